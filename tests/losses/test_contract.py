from likewise.testing import LossContract
from tests.losses.cases import CASES


class TestLosses(LossContract):
    cases = CASES
