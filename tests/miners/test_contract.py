from likewise.testing import MinerContract
from tests.miners.cases import CASES


class TestMiners(MinerContract):
    cases = CASES
