"""The examples that ``tests/guides`` runs are the guides' own: only import lines differ, and what is noted beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guides import guide_blocks, ported
from tests.guides.guide_blocks import Block

EXAMPLES = sorted((Path(guide_blocks.__file__).parent / "examples").glob("*.py"))
BLOCKS = {block.name: block for block in guide_blocks.stored()}
INCLUDED = {
    "hvd_trainer",
    "mlflow_simple_example",
    "report_metrics_and_save_checkpoints",
    "tf_starter",
    "torch_trainer",
}
"""Files that a guide includes by name, of the trainers that there are."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_the_guide_s_but_for_import_lines_and_noted_edits(example):
    for region in ported.regions(example):
        for name in region.blocks:
            assert ported.differences(region, BLOCKS[name]) == []


def test_every_code_block_of_the_guides_is_in_an_example():
    shown = {name for example in EXAMPLES for region in ported.regions(example) for name in region.blocks}
    missing = [block for name, block in BLOCKS.items() if name not in shown]
    assert [(block.name, block.code) for block in missing] == [
        ("001:847", "$ pip install mlflow\n$ pip install tensorboardX")
    ], "and this is no code"


def test_the_files_that_the_guides_include_are_there():
    assert {example.stem for example in EXAMPLES} >= INCLUDED


EDITS = {
    # A mistake of the guide.
    ('print(result.metrics["num_epochs"])', 'print(result.metrics["epoch"])'): "000:30 001:299 002:169",
    ("for images, targets in dataloader:", "for images, targets in data_loader:"): "001:1083",
    (
        "torch.cuda.set_device(device)",
        "torch.cuda.set_device(device) if torch.cuda.is_available() else None",
    ): "001:66 001:94 002:32 002:63",
    ("X = X.to_device(device)", "X = X.to(device)"): "001:94 002:63",
    ("y = y.to_device(device)", "y = y.to(device)"): "001:94 002:63",
    # Another library has changed since.
    (
        "accuracy = torchmetrics.functional.accuracy(preds, target).item()",
        'accuracy = torchmetrics.functional.accuracy(preds, target, task="multiclass", num_classes=5).item()',
    ): "001:913 004:256",
    (
        "dataloader = data_shard.to_torch(batch_size=batch_size)",
        'dataloader = data_shard.to_torch(label_column="y", batch_size=batch_size)',
    ): "004:533",
    (
        'dataset = ray.data.read_csv("...").filter().pipeline(length=50)',
        'dataset = ray.data.read_csv(CSV).filter(lambda row: row["x"] < 80)',
    ): "004:533",
    # A placeholder.
    ('dataset = ray.data.read_csv("...")', "dataset = ray.data.read_csv(CSV)"): "000:140 001:405",
    ("model = ... # build model", "model = build_model()"): "001:145",
    (
        "torch_backend=TorchConfig(...),",
        'torch_backend=TorchConfig(backend="gloo", init_method="tcp", timeout_s=60),',
    ): "001:223 002:119",
    (
        "tensorflow_backend=TensorflowConfig(...),",
        "tensorflow_backend=TensorflowConfig(port_range=(23400, 23499)),",
    ): "001:237",
    (
        "tensorflow_backend=HorovodConfig(...),",
        'tensorflow_backend=HorovodConfig(init="torch", timeout_s=60),',
    ): "001:250",
}
"""Lines of the guides, and what replaces them, in which blocks."""

STEP = """\
    seen += X.flatten().tolist()
    step(model, X, y)
return type(model).__name__, seen, [parameter.detach().cpu() for parameter in model.parameters()]"""

INSERTIONS = {
    # A body, where the guide has none or only "...".
    'session.report({"parameters": 0})': "000:11 001:280 002:150",
    'session.report({"parameters": 1, "settings": len(config)})': "000:11 001:280 002:150",
    'return "no config"': "004:159",
    "return config": "004:159",
    'model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse")': "001:145",
    """\
features = np.arange(64, dtype="float32").reshape(16, 4) / 64
dataset = tf.data.Dataset.from_tensor_slices((features, features.sum(1, keepdims=True))).batch(batch_size)
history = model.fit(dataset, epochs=5, verbose=0)
for loss in history.history["loss"]:
    train.report({"loss": loss})
return model.distribute_strategy.num_replicas_in_sync, [weights.tolist() for weights in model.get_weights()]""": "001:158",
    """\
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = model(torch.randn(16, 4)).square().mean()
    loss.backward()
    optimizer.step()
    train.report({"loss": loss.item(), "numpy": np.random.rand(), "python": random.random()})""": "001:1126",
    # Two diffs are one function: the first one makes the model, the second one trains it.
    "return model": "001:66 002:32",
    "model, seen = before_001_model(), []": "001:94",
    "model, seen = after_001_model(), []": "001:94 002:63",
    "model, seen = before_002_model(), []": "002:63",
    "model, seen = after_002_model(), []": "002:63",
    STEP: "001:94 002:63",
    # The guide does it in its other examples.
    "trainer.start()": "004:533",
    # What a test looks at.
    "return [sum(1 for _ in shard.iter_rows()) for shard in (train_data_shard, validation_data_shard)]": "000:140 001:405",
    'train.report({"epoch": epoch, "loss": loss.item()})': "001:1083",
    """\
return {
    "computed_in": str(model.module.computed_in),
    "outputs": str(outputs.dtype),
    "weights": model.module.linear.weight.detach(),
}""": "001:1083",
    "by_the_first = global_batch_size": "001:122",
    """\
train.report({"global_batch_size": global_batch_size, "by_the_first": by_the_first})
return {name: function() for name, function in ported.items()}""": "002:91",
    "ray.sgd.report(rows=len(y))": "004:533",
}
"""Lines of our own inside the guides' blocks, and in which blocks. None of them may change what the guide's lines do."""


def test_the_edits_of_the_guides_are_these():
    edits = {(edit.block, edit.guide, edit.example) for example in EXAMPLES for edit in ported.edits(example)}
    assert edits == {(block, *lines) for lines, blocks in EDITS.items() for block in blocks.split()}


def test_our_own_lines_inside_blocks_are_these():
    insertions = {(part.block, part.code) for example in EXAMPLES for part in ported.insertions(example)}
    assert insertions == {(block, code) for code, blocks in INSERTIONS.items() for block in blocks.split()}


GUIDE = Block(
    "009",
    1,
    "python",
    "import torch\nfrom ray.air import session, ScalingConfig\n\nconfig = ScalingConfig(num_workers=8)\nprint(config)",
)
PORTED = GUIDE.code.replace("ray.air", "trainlib")


def compared(tmp_path: Path, text: str, block: Block = GUIDE, mark: str = "#: guide 009:1") -> list[str]:
    example = tmp_path / "example.py"
    example.write_text(f"{mark}\n{text}\n")
    return [difference for region in ported.regions(example) for difference in ported.differences(region, block)]


def test_only_an_import_line_may_differ(tmp_path):
    assert compared(tmp_path, PORTED) == []
    assert compared(tmp_path, GUIDE.code) == []


@pytest.mark.parametrize(
    ("text", "difference"),
    [
        (PORTED.replace("=8", "=2"), "the guide has 'config = ScalingConfig(num_workers=8)', and the example"),
        (PORTED.replace("import torch", "import trainlib.torch"), "the guide has 'import torch'"),
        (PORTED.replace("session, ", ""), "the guide has 'from ray.air import session, ScalingConfig'"),
        (PORTED.replace("trainlib", "elsewhere"), "the guide has 'from ray.air import session, ScalingConfig'"),
        (
            PORTED.replace("session, ScalingConfig", "train as session, ScalingConfig"),
            "and the example 'from trainlib import train as session, ScalingConfig'",
        ),
        (PORTED.replace("\nprint(config)", ""), "009:1 has 5 lines, and the example 4"),
        (PORTED.replace("print(config)", "#: instead of: print(config)\nprint(1)"), "the guide has 'print(config)'"),
        (
            PORTED.replace("print(config)", "#: instead of: print(2)\n#: because: why\nprint(1)"),
            "the guide has 'print(config)', and the example 'print(1)'",
        ),
    ],
    ids=[
        "a number",
        "another import",
        "fewer names",
        "another package",
        "under another's name",
        "a line less",
        "no reason",
        "another line",
    ],
)
def test_any_other_difference_is_named(tmp_path, text, difference):
    (found,) = compared(tmp_path, text)
    assert difference in found


def test_noted_edits_and_lines_of_our_own_are_no_differences_but_are_found(tmp_path):
    edited = PORTED.replace("print(config)", "#: instead of: print(config)\n#: because: it is long\nprint(1)")
    assert compared(tmp_path, edited) == []
    assert ported.edits(tmp_path / "example.py") == [ported.Edit("009:1", "print(config)", "print(1)")]
    with_more = PORTED.replace("\nprint", "\n#: ours: to look at it\nseen = 1\n#: guide\nprint")
    assert compared(tmp_path, with_more) == []
    assert ported.insertions(tmp_path / "example.py") == [ported.Insertion("009:1", "seen = 1")]


@pytest.mark.parametrize(
    ("after", "found"),
    [("    # a comment\n    return 1", ["# a comment\nreturn 1"]), ("# a comment\n\n    return 1", None), ("f()", [])],
    ids=["in the function", "under a comment", "below it"],
)
def test_lines_that_go_on_with_a_function_of_the_guide_are_found(tmp_path, after, found):
    function = Block("009", 1, "python", "def f():\n    ...")
    assert compared(tmp_path, f"{function.code}\n#: ours: why\n{after}", function) == []
    codes = [part.code for part in ported.insertions(tmp_path / "example.py")]
    assert codes == ([after] if found is None else found)


@pytest.mark.parametrize(
    ("guide", "example", "is_allowed"),
    [
        ("import ray.train.torch", "import trainlib as ray", True),
        ("from ray.util.sgd import v2 as sgd", "from trainlib import sgd", True),
        ("import ray", "from trainlib import train as ray", False),
        ("from ray.util.sgd import v2 as sgd", "from trainlib import train as sgd", False),
        ("from ray.train import report", "from trainlib import session as report", False),
    ],
)
def test_a_name_is_imported_from_what_has_this_name(tmp_path, guide, example, is_allowed):
    assert (compared(tmp_path, example, Block("009", 1, "python", guide)) == []) == is_allowed


@pytest.mark.parametrize("mark", ["#: guides 009:1", "#: ours", "#: because: of nothing"])
def test_a_mark_that_says_nothing_is_an_error(tmp_path, mark):
    with pytest.raises(ported.MarkError, match=r"example.py, line 1: '#:"):
        compared(tmp_path, "", mark=mark)


@pytest.mark.parametrize(
    "diff",
    ["-def f():\n+def f(a):\n     pass", "def f(b):\n-   a()\n+   b()\n    c()"],
    ids=["with a column for signs", "with signs in the place of a space"],
)
def test_both_sides_of_a_diff_are_code(diff):
    block = Block("009", 1, "diff", diff)
    sides = {"-def": ("def f():\n    pass", "def f(a):\n    pass")}.get(
        diff[:4], ("def f(b):\n    a()\n    c()", "def f(b):\n    b()\n    c()")
    )
    assert (block.side("before"), block.side("after")) == sides


def test_code_blocks_are_found_by_their_line_and_without_the_directive_s_options():
    text = (
        "Text\n\n    .. code-block:: python\n        :emphasize-lines: 1\n\n        a = 1\n\n        b = 2\n\n    Text"
    )
    (block,) = guide_blocks.in_guide("009", text + "\n\n.. .. code-block:: bash\n\n..     in a comment")
    assert (block.line, block.language, block.code) == (3, "python", "a = 1\n\nb = 2")


def test_a_block_that_was_edited_by_hand_is_noticed(tmp_path, monkeypatch):
    (tmp_path / "009.txt").write_text(f"@@ line 1 python {GUIDE.digest}\n{GUIDE.code}\n")
    monkeypatch.setattr(guide_blocks, "BLOCKS", tmp_path)
    assert guide_blocks.stored() == [GUIDE]
    (tmp_path / "009.txt").write_text(f"@@ line 1 python {GUIDE.digest}\n{PORTED}\n")
    with pytest.raises(ValueError, match=r"009.txt: the block of line 1 is not the guide's any more"):
        guide_blocks.stored()
