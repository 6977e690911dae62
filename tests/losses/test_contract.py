import pytest

from likewise.testing import LossCase, LossContract
from tests.losses.cases import CASES, PROXY_CASES


class TestPairLosses(LossContract):
    cases = CASES

    def test_compiles_whole(self, case: LossCase) -> None:
        """Two seconds each: a tenth of them, because the compiler traces the engines, which are the same for all."""
        if self.cases.index(case) % 10:
            pytest.skip("another tenth is compiled")
        super().test_compiles_whole(case)


class TestProxyLosses(TestPairLosses):
    cases = PROXY_CASES
