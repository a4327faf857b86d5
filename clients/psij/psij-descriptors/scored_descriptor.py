from packaging.version import Version
from psij.descriptor import Descriptor

__PSI_J_EXECUTORS__ = [Descriptor(name='scored', nice_name='Scored', version=Version('0.1.0'), cls='scored_psij.executor.ScoredJobExecutor')]
