"""Which checkpoints something else in the registry refers to: model versions, and trainings that were forked from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from trainlib import _storage as storage
from trainlib._registry import tags
from trainlib._registry.retention import SavedCheckpoint

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

__all__ = ["forked_from", "registered_checkpoints"]

_PAGE = 200


def registered_checkpoints(client: MlflowClient, saved: Iterable[SavedCheckpoint]) -> frozenset[str]:
    """The ids of those checkpoints that a version of a registered model refers to, by its id or by where its files are."""
    ids, sources = set(), set()
    for version in _versions(client):
        ids |= {str(version.model_id), str(version.source).removeprefix("models:/")}
        sources |= {storage.absolute(each) for each in (version.source, version.tags.get(tags.LOCATION)) if each}
    return frozenset(
        each.model_id
        for each in saved
        if each.model_id in ids or any(source.startswith(each.location) for source in sources)
    )


def forked_from(client: MlflowClient) -> frozenset[str]:
    """The ids of the checkpoints that trainings were forked from which are not over. They may start from them again."""
    experiments = [each.experiment_id for each in client.search_experiments()]
    found: set[str] = set()
    token = None
    while True:
        page = client.search_runs(
            experiments,
            f"tags.`{tags.FORKED_FROM}` LIKE 'm-%' AND attributes.status != 'FINISHED'",
            max_results=_PAGE,
            page_token=token,
        )
        found |= {run.data.tags[tags.FORKED_FROM] for run in page}
        if not (token := page.token):
            return frozenset(found)


def _versions(client: MlflowClient) -> Iterator[ModelVersion]:
    token = None
    while True:
        page = client.search_model_versions(max_results=_PAGE, page_token=token)
        yield from page
        if not (token := page.token):
            return
