"""Runs rdma-core's own tests: rdma_core_tests.py DIRECTORY ADDRESS PORT RESULTS OPTION...

DIRECTORY has their package, tests; ADDRESS is one of this host's, and PORT one of TCP that is free there; the options are those of their run_tests.py. What came of each
test is written to RESULTS, one a line: its name, what came of it, and why, with tabs between them.
"""
import multiprocessing.context
import multiprocessing.process
import os
import sys
import unittest

directory, address, port, results = sys.argv[1:5]
del sys.argv[1:5]
sys.path[:0] = [directory, os.path.join(directory, 'tests')]

import tests.base
import tests.base_rdmacm
import tests.utils
from args_parser import parser


def ip_and_mac(self, dev, port, index):
    """What _get_ip_mac reads from sysfs, where a device that is preloaded is not."""
    self.args.append([dev, port, index, address, '02:00:00:00:00:01'])


tests.base.RDMATestCase._get_ip_mac = ip_and_mac

# They have a port of their own for all runs there are.
create = tests.base_rdmacm.CMResources.__init__
tests.base_rdmacm.CMResources.__init__ = lambda self, *args, **kwargs: create(self, *args, **{'port': port, **kwargs})

# A machine that is busy is no failure: what the tests wait for has ten times as long. But nobody waits for an end that has failed.
PATIENCE = 10
tests.utils.POLL_CQ_TIMEOUT *= PATIENCE
make_barrier = multiprocessing.context.BaseContext.Barrier
join = multiprocessing.process.BaseProcess.join
end_of = tests.base.RDMACMBaseTest._rdmacm_exception_handler
barriers = []


def patient_barrier(self, parties, action=None, timeout=None):
    barriers.append(make_barrier(self, parties, action, timeout and timeout * PATIENCE))
    return barriers[-1]


def fail(passive, exception):
    barriers[-1].abort()
    end_of(passive, exception)


multiprocessing.context.BaseContext.Barrier = patient_barrier
multiprocessing.process.BaseProcess.join = lambda self, timeout=None: join(self, timeout and timeout * PATIENCE)
tests.base.RDMACMBaseTest._rdmacm_exception_handler = staticmethod(fail)


class Result(unittest.TextTestResult):
    """Notes what comes of each test."""
    def note(self, test, outcome, why=''):
        with open(results, 'a') as out:
            out.write('\t'.join([test.id(), outcome, ' '.join(why.split())]) + '\n')

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, 'passes')

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, 'fails', str(err[1]))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, 'fails', str(err[1]))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, 'skipped', reason)


parser.parse_args()
suite = unittest.defaultTestLoader.loadTestsFromModule(tests)
unittest.TextTestRunner(resultclass=Result, verbosity=2).run(suite)
