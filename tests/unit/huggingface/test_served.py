"""What predicts with a checkpoint, also where trainlib is not installed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from tests.without_trainlib import predictions_without_trainlib
from trainlib import _storage as storage
from trainlib._registry.retention import SavedCheckpoint
from trainlib._serving.files import put_model_files
from trainlib.errors import CheckpointNotFoundError
from trainlib.huggingface import TransformersCheckpoint, _served
from trainlib.huggingface._loop import _load_weights

WORDS = ("[PAD]", "good", "bad", "film", "very")


def tokenizer():
    words = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="[PAD]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[PAD]", pad_token="[PAD]")


def classifier(**more):
    torch.manual_seed(0)
    sizes = {"vocab_size": len(WORDS), "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(**sizes, intermediate_size=8, max_position_embeddings=8, **more)
    return transformers.BertForSequenceClassification(config).eval()


def generator():
    torch.manual_seed(0)
    ends = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    config = transformers.GPT2Config(vocab_size=len(WORDS), n_positions=32, n_embd=8, n_layer=1, n_head=1, **ends)
    return transformers.GPT2LMHeadModel(config)


def test_a_classifier_answers_texts_and_tokens_with_labels_and_scores(tmp_path):
    model = classifier(id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1})
    saved = TransformersCheckpoint.from_model(model, tokenizer(), path=tmp_path)
    assert _served.why_not(saved.path) is None
    predict = _served.load(saved.path)
    texts = ["very good film", "bad"] * 20  # more than are answered at once
    answers = predict(pd.DataFrame({"text": texts, "id": range(40)}))
    ids = torch.tensor([[4, 1, 3], [2, 0, 0]])
    logits = model(ids, attention_mask=torch.tensor([[1, 1, 1], [1, 0, 0]])).logits
    assert answers["label"].tolist()[:2] == [model.config.id2label[each] for each in logits.argmax(-1).tolist()]
    assert answers["score"].tolist()[:2] == pytest.approx(torch.softmax(logits, -1).max(-1).values.tolist(), rel=1e-5)
    assert len(answers) == 40
    by_tokens = predict(pd.DataFrame({"input_ids": [[4, 1, 3], [2]]}))
    assert by_tokens.equals(answers.iloc[:2])
    with pytest.raises(
        ValueError, match=r"takes the columns input_ids, .* but the rows have x, and there is no column 'text'"
    ):
        predict(pd.DataFrame({"x": [1]}))


def test_a_registered_model_predicts_the_same_where_there_is_no_trainlib(tmp_path):
    checkpoint = TransformersCheckpoint.from_model(classifier(), tokenizer())
    location = storage.join(str(tmp_path), "m-1", "artifacts", "checkpoint_000000")
    checkpoint.to_uri(location)
    facts = {"index": 0, "iteration": 1, "score": None, "metrics": {}, "kind": checkpoint.kind}
    assert put_model_files(SavedCheckpoint(model_id="m-1", location=location, **facts), "run-1") is None
    rows = pd.DataFrame({"text": ["very good film", "bad"]})
    root = str(Path(location).parent)
    predicted, (imported,) = predictions_without_trainlib({root: rows}, needs=["ray"], HF_HUB_OFFLINE="1")
    assert predicted[root] == _served.load(location)(rows).to_numpy().tolist()
    assert "transformers" in imported
    assert "ray" not in imported
    needed = [line.partition("==")[0] for line in Path(root, "requirements.txt").read_text().splitlines()]
    assert needed == ["mlflow", "transformers", "accelerate", "torch"]


def test_a_regression_answers_with_numbers_and_a_generator_with_text(tmp_path):
    number = TransformersCheckpoint.from_model(classifier(num_labels=1), path=tmp_path / "number")
    assert _served.load(number.path)(pd.DataFrame({"input_ids": [[1, 2], [2, 1]]})).shape == (2,)
    with pytest.raises(ValueError, match="it was saved without a tokenizer"):
        _served.load(number.path)(pd.DataFrame({"text": ["good"]}))
    inside = tmp_path / "made" / "checkpoint"  # where RayTrainReportCallback puts it
    TransformersCheckpoint.from_model(generator(), tokenizer(), path=inside)
    predict = _served.load(str(tmp_path / "made"))
    assert predict(pd.DataFrame({"text": ["good film"]})).columns.tolist() == ["generated_text"]
    assert predict(pd.DataFrame({"input_ids": [[1, 2]]})).shape == (1, 2, len(WORDS))


def test_the_answer_for_a_row_does_not_depend_on_the_other_rows(tmp_path):
    TransformersCheckpoint.from_model(generator(), tokenizer(), path=tmp_path)
    predict = _served.load(str(tmp_path))
    texts = ["good", "very good film bad", "good film " * 50]  # the last one is longer than the model can read
    alone = [predict(pd.DataFrame({"text": [text]}))["generated_text"][0] for text in texts]
    assert predict(pd.DataFrame({"text": texts}))["generated_text"].tolist() == alone
    assert len(alone[0].split()) == 16, "half of what the model can read is kept for what it makes"

    ids = [[1, 2]] * 32 + [[1, 2, 3]]  # more than are answered at once, and of two lengths
    logits = predict(pd.DataFrame({"input_ids": ids}))
    assert [len(row) for row in logits] == [2] * 32 + [3]
    mixed = predict(pd.DataFrame({"input_ids": [[1, 2, 3], [1, 2]]}))
    assert torch.allclose(torch.tensor(mixed[1]), torch.tensor(logits[0]), atol=1e-5)
    equal = predict(pd.DataFrame({"input_ids": [[1, 2]] * 33}))
    assert equal.shape == (33, 2, len(WORDS))


@pytest.mark.parametrize("longest", [16, None], ids=["limited", "unlimited"])
@pytest.mark.parametrize("kind", ["Roberta", "MPNet", "Bert"])
def test_texts_that_are_longer_than_a_model_can_read_are_cut(kind, longest, tmp_path):
    """RoBERTa and its like have two places that no token gets."""
    torch.manual_seed(0)
    sizes = {"vocab_size": len(WORDS), "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    places = 16 if kind == "Bert" else 18
    filled = {"max_position_embeddings": places, "pad_token_id": 0 if kind == "Bert" else 1}
    config = getattr(transformers, f"{kind}Config")(**sizes, **filled, intermediate_size=8)
    model = getattr(transformers, f"{kind}ForSequenceClassification")(config).eval()
    words = Tokenizer(models.WordLevel({"good": 0, "[PAD]": 1, "bad": 2, "film": 3, "very": 4}, unk_token="[PAD]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    limited = {"model_max_length": longest} if longest else {}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", **limited)
    predict = _served.load(TransformersCheckpoint.from_model(model, fast, path=tmp_path).path)
    answers = predict(pd.DataFrame({"text": ["very " * 100, "very " * 16]}))
    assert answers["score"][0] == pytest.approx(answers["score"][1])
    logits = model(torch.full((1, 16), 4)).logits
    assert answers["score"][0] == pytest.approx(torch.softmax(logits, -1).max().item(), rel=1e-5)


def translator():
    torch.manual_seed(0)
    sizes = {"vocab_size": len(WORDS), "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}
    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(**sizes, decoder_start_token_id=0, pad_token_id=0, eos_token_id=3)
    )


def test_a_model_with_an_encoder_generates_from_texts_and_from_the_columns_it_was_trained_with(tmp_path):
    TransformersCheckpoint.from_model(translator(), tokenizer(), path=tmp_path / "with")
    predict = _served.load(str(tmp_path / "with"))
    of_texts = predict(pd.DataFrame({"text": ["very good film", "bad"]}))
    columns = {"input_ids": [[4, 1, 3], [2]], "attention_mask": [[1, 1, 1], [1]], "labels": [[1], [2]]}
    of_tokens = predict(pd.DataFrame(columns))
    assert of_tokens.columns.tolist() == ["generated_text"]
    assert of_tokens.equals(of_texts)
    assert list(predict(pd.DataFrame(columns)[:0])) == ["generated_text"]
    taught = predict(pd.DataFrame({**columns, "decoder_input_ids": [[0, 1], [0, 2]]}))
    assert len(taught[0][0]) == len(WORDS), "logits"

    TransformersCheckpoint.from_model(translator(), path=tmp_path / "without")
    of_ids = _served.load(str(tmp_path / "without"))(pd.DataFrame(columns))
    assert of_ids.columns.tolist() == ["generated_ids"]
    decoded = tokenizer().batch_decode(of_ids["generated_ids"].tolist(), skip_special_tokens=True)
    assert decoded == of_texts["generated_text"].tolist()


@pytest.mark.parametrize("column", ["text", "review"])
def test_a_missing_text_is_named_with_its_row(column, tmp_path):
    predict = _served.load(TransformersCheckpoint.from_model(classifier(), tokenizer(), path=tmp_path).path)
    rows = pd.DataFrame({"id": range(41), column: [*["good"] * 40, None]})
    with pytest.raises(ValueError, match=rf"the column '{column}' has no text in row 40 of the 41 rows, .*Fill it in"):
        predict(rows)
    assert len(predict(rows[:-1])) == 40
    with pytest.raises(ValueError, match="the rows have review, title, and there is no column 'text'"):
        predict(pd.DataFrame({"review": ["good", None], "title": ["bad", "film"]}))


def test_no_rows_have_no_answers(tmp_path):
    TransformersCheckpoint.from_model(generator(), tokenizer(), path=tmp_path / "text")
    TransformersCheckpoint.from_model(classifier(), tokenizer(), path=tmp_path / "labels")
    TransformersCheckpoint.from_model(classifier(num_labels=1), tokenizer(), path=tmp_path / "numbers")
    none = pd.DataFrame({"text": pd.Series([], dtype=str)})
    assert list(_served.load(str(tmp_path / "text"))(none)) == ["generated_text"]
    assert list(_served.load(str(tmp_path / "labels"))(none)) == ["label", "score"]
    assert _served.load(str(tmp_path / "numbers"))(none).shape == (0,)


def finder(kind="Bert"):
    """A model that marks where an answer begins and ends."""
    torch.manual_seed(0)
    sizes = {"vocab_size": len(WORDS), "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(**sizes, intermediate_size=8, max_position_embeddings=8)
    return getattr(transformers, f"{kind}ForQuestionAnswering")(config).eval()


def test_question_answering_has_logits_of_both_ends_whatever_labels_the_rows_have(tmp_path):
    model = finder()
    predict = _served.load(TransformersCheckpoint.from_model(model, tokenizer(), path=tmp_path).path)
    rows = pd.DataFrame({"input_ids": [[4, 1, 3], [2, 1, 3]]})
    answers = predict(rows)
    assert answers.columns.tolist() == ["start_logits", "end_logits"]
    expected = model(torch.tensor(rows["input_ids"].tolist()))
    for name in answers:
        torch.testing.assert_close(torch.tensor(answers[name].tolist()), expected[name].detach())
    assert predict(rows.assign(start_positions=[0, 1], end_positions=[1, 1])).equals(answers)
    ragged = predict(pd.DataFrame({"text": ["very good film", "bad"]}))
    assert [len(row) for row in ragged["start_logits"]] == [len(row) for row in ragged["end_logits"]] == [3, 1]
    assert list(predict(rows[:0])) == ["start_logits", "end_logits"]


def test_an_answer_is_found_by_models_that_name_it_in_other_ways(tmp_path):
    torch.manual_seed(0)
    sizes = {
        "vocab_size": len(WORDS),
        "d_model": 8,
        "n_layer": 1,
        "n_head": 2,
        "d_inner": 8,
        "start_n_top": 2,
        "end_n_top": 2,
    }
    beams = transformers.XLNetForQuestionAnswering(transformers.XLNetConfig(**sizes))
    predict = _served.load(TransformersCheckpoint.from_model(beams, path=tmp_path / "beams").path)
    answers = predict(pd.DataFrame({"input_ids": [[4, 1, 3], [2, 1, 3]]}))
    assert {"start_top_index", "start_top_log_probs", "end_top_index"} <= set(answers)
    assert [len(each) for each in answers["start_top_index"]] == [2, 2]

    reader = transformers.DPRReader(transformers.DPRConfig(**finder().config.to_dict() | {"model_type": "dpr"}))
    predict = _served.load(TransformersCheckpoint.from_model(reader, path=tmp_path / "reader").path)
    answers = predict(pd.DataFrame({"input_ids": [[4, 1, 3], [2]]}))
    assert [len(each) for each in answers["end_logits"]] == [3, 1], "as many as the row has tokens"

    tuples = finder()
    tuples.config.return_dict = False
    predict = _served.load(TransformersCheckpoint.from_model(tuples, path=tmp_path / "tuples").path)
    assert list(predict(pd.DataFrame({"input_ids": [[4, 1, 3]]}))) == ["start_logits", "end_logits"]


def test_a_model_of_two_tasks_answers_with_the_logits_of_both(tmp_path):
    model = transformers.BertForPreTraining(finder().config).eval()
    predict = _served.load(TransformersCheckpoint.from_model(model, path=tmp_path).path)
    answers = predict(
        pd.DataFrame({"input_ids": [[4, 1], [2]], "labels": [[4, 1], [2]], "next_sentence_label": [0, 1]})
    )
    assert [len(row) for row in answers["prediction_logits"]] == [2, 1]
    assert [len(row) for row in answers["seq_relationship_logits"]] == [2, 2], "one of each row, not of each token"


@pytest.mark.parametrize("make", [classifier, generator, lambda: translator()], ids=["labels", "text", "translation"])
def test_a_text_or_a_row_of_no_tokens_is_named_alone_and_among_others(make, tmp_path):
    predict = _served.load(TransformersCheckpoint.from_model(make(), tokenizer(), path=tmp_path).path)
    for texts, row in ((["good"] * 40 + [""], 40), (["\n"], 0)):
        with pytest.raises(
            ValueError, match=rf"no tokens in the column 'text' of row {row}, .*: it is '.*'. Fill it in"
        ):
            predict(pd.DataFrame({"text": texts}))
    with pytest.raises(ValueError, match="no tokens in the column 'input_ids' of row 1, counted from 0"):
        predict(pd.DataFrame({"input_ids": [[1, 2], []]}))


@pytest.mark.parametrize("make", [classifier, generator, finder], ids=["labels", "text", "span"])
def test_tokens_that_are_too_many_are_named_with_their_row(make, tmp_path):
    model = make()
    places = model.config.max_position_embeddings
    predict = _served.load(TransformersCheckpoint.from_model(model, path=tmp_path).path)
    rows = pd.DataFrame({"input_ids": [[1]] * 40 + [[1] * (places + 1)]})
    message = rf"{places + 1} tokens in the column 'input_ids' of row 40, .*: the model reads {places}. Cut it"
    with pytest.raises(ValueError, match=message):
        predict(rows)
    assert len(predict(rows[:-1])) == 40


def test_models_whose_places_have_no_end_read_more_tokens_than_they_were_trained_with(tmp_path):
    torch.manual_seed(0)
    sizes = {"vocab_size": len(WORDS), "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**sizes, intermediate_size=8, max_position_embeddings=4)
    )
    predict = _served.load(TransformersCheckpoint.from_model(model, path=tmp_path).path)
    assert predict(pd.DataFrame({"input_ids": [[1] * 6]})).shape == (1, 6, len(WORDS))


def test_weights_of_half_precision_and_a_tokenizer_without_padding_are_served(tmp_path):
    TransformersCheckpoint.from_model(generator().to(torch.bfloat16), path=tmp_path / "half")
    assert _served.load(str(tmp_path / "half"))(pd.DataFrame({"input_ids": [[1, 2]]})).dtype == "float32"
    words = tokenizer()
    words.pad_token = None  # as that of GPT-2
    TransformersCheckpoint.from_model(generator(), words, path=tmp_path / "unpadded")
    made = _served.load(str(tmp_path / "unpadded"))(pd.DataFrame({"text": ["good", "very good film bad"]}))
    TransformersCheckpoint.from_model(generator(), tokenizer(), path=tmp_path / "padded")
    assert made.equals(_served.load(str(tmp_path / "padded"))(pd.DataFrame({"text": ["good", "very good film bad"]})))


def test_a_checkpoint_of_something_else_says_what_is_missing(tmp_path):
    other = TransformersCheckpoint.from_directory(tmp_path)
    (tmp_path / "model.pt").touch()
    assert "it has no config.json" in _served.why_not(str(tmp_path))
    with pytest.raises(
        CheckpointNotFoundError, match=r"has no Hugging Face model: config.json is missing.* It has model.pt"
    ):
        other.get_model()
    with pytest.raises(CheckpointNotFoundError, match=r"Pass it to the transformers.Trainer as processing_class"):
        other.get_tokenizer()
    with pytest.raises(CheckpointNotFoundError, match="has no TrainingArguments"):
        other.get_training_arguments()
    (tmp_path / "config.json").write_text('{"architectures": ["MyModel"]}')
    with pytest.raises(ValueError, match=r"the model's class is MyModel, .* pass it, get_model\(MyModel\)"):
        other.get_model()


def test_what_a_training_function_imports_is_where_ray_has_it():
    from trainlib.huggingface.transformers import RayTrainReportCallback, prepare_trainer
    from trainlib.train.huggingface import transformers as as_in_ray

    assert as_in_ray.prepare_trainer is prepare_trainer
    assert as_in_ray.RayTrainReportCallback is RayTrainReportCallback


def test_a_models_weights_are_loaded_into_another_one():
    first, second = generator(), generator()
    torch.nn.init.constant_(first.lm_head.weight, 0.5)
    saved = TransformersCheckpoint.from_model(first)
    assert torch.equal(saved.get_model(generator()).lm_head.weight, first.lm_head.weight)
    with saved.as_directory() as folder:
        _load_weights(second, folder)
    assert torch.equal(second.lm_head.weight, first.lm_head.weight)
