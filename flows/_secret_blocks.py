"""References to Prefect's Secret blocks in a form, e.g. ``{{ prefect.blocks.secret.warehouse }}``.

Prefect stores what a form contains as it is. With a reference there, it stores the reference, and the value comes from the block
when the training starts.
"""

from __future__ import annotations

from typing import Any

from prefect.blocks.system import Secret

from trainlib._form_secrets import REFERENCE
from trainlib._secrets import SecretText
from trainlib.errors import InvalidArgumentError

__all__ = ["with_secret_blocks"]


def with_secret_blocks(value: Any, path: str) -> Any:
    """A copy of a config in which each reference is replaced by the value of its block. Asks Prefect for them.

    Args:
        value: The config.
        path: What it is called, for errors.

    Raises:
        InvalidArgumentError: there is no such block, or its value is not a text.

    Example:
        >>> with_secret_blocks({"lr": 0.1}, "train_loop_config")
        {'lr': 0.1}
    """
    if isinstance(value, dict):
        return {key: with_secret_blocks(item, f"{path}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list):
        return [with_secret_blocks(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if not isinstance(value, str) or REFERENCE.search(value) is None:
        return value
    return SecretText(REFERENCE.sub(lambda found: _value_of(found[1], path), value))


def _value_of(name: str, path: str) -> str:
    try:
        # Not by itself: where somebody has called the flow in a coroutine, it would give another coroutine.
        block: Any = Secret.load(name, _sync=True)  # type: ignore[call-arg]
    except ValueError as error:
        raise InvalidArgumentError(
            f"{path} refers to the Secret block {name!r}, and Prefect has none of that name. Create it in the Prefect UI under "
            f"Blocks, or with prefect.blocks.system.Secret(value=...).save({name!r})."
        ) from error
    value = block.get()
    if not isinstance(value, str):
        value = block.value.get_secret_value()  # get() reads texts such as 1234 as JSON
    if not isinstance(value, str):
        raise InvalidArgumentError(
            f"{path} refers to the Secret block {name!r}, whose value is a {type(value).__name__} and not a text. Refer to it as "
            f'{{"$ref": {{"block_document_slug": "secret/{name}"}}}}: then the training function gets the block.'
        )
    return value
