from likewise.testing import LossContract
from tests.losses.cases import CASES, PROXY_CASES


class TestPairLosses(LossContract):
    cases = CASES


class TestProxyLosses(LossContract):
    cases = PROXY_CASES
