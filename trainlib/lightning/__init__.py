"""PyTorch Lightning inside of a TorchTrainer's function: a strategy, an environment, a callback, and a check of them.

``import trainlib.lightning`` imports neither Lightning nor torch.
"""

from trainlib.lightning._callback import RayTrainReportCallback
from trainlib.lightning._environment import RayLightningEnvironment
from trainlib.lightning._prepare import prepare_trainer
from trainlib.lightning._strategy import RayDDPStrategy

__all__ = ["RayDDPStrategy", "RayLightningEnvironment", "RayTrainReportCallback", "prepare_trainer"]
