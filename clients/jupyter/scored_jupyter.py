"""A kernel provisioner of Jupyter: the kernel is a job of a Scored cluster."""
import asyncio
import signal
import typing

import scored
from jupyter_client.connect import LocalPortCache
from jupyter_client.provisioning import KernelProvisionerBase

_PAUSE = 0.1  # seconds between two questions


class ScoredProvisioner(KernelProvisionerBase):
    """Submits the kernel's command, and passes its signals on."""

    job: 'scored.Job | None' = None
    options: typing.Dict[str, typing.Any] = {}

    def __init__(self, **settings: typing.Any) -> None:
        metadata = settings['kernel_spec'].metadata.get('kernel_provisioner', {})
        super().__init__(**{name: value for name, value in settings.items() if name in self.trait_names()})
        self.options = dict(metadata.get('config', {}))

    @property
    def has_process(self) -> bool:
        return self.job is not None

    async def _refresh(self) -> scored.Job:
        assert self.job is not None
        return await asyncio.to_thread(self.job.refresh)

    async def poll(self) -> 'int | None':
        if self.job is None:
            return 0
        return self.job.exit_code if (await self._refresh()).is_final else None

    async def wait(self) -> 'int | None':
        if self.job is None:
            return 0
        while not (await self._refresh()).is_final:
            await asyncio.sleep(_PAUSE)
        code = self.job.exit_code
        self.job = None
        return code

    async def send_signal(self, signum: int) -> None:
        if self.job is None:
            return
        if signum == 0:
            await self._refresh()
            return
        await asyncio.to_thread(self.job.signal, signal.Signals(signum).name.removeprefix('SIG'))

    async def kill(self, restart: bool = False) -> None:
        await self.terminate(restart)

    async def terminate(self, restart: bool = False) -> None:
        if self.job is not None:
            await asyncio.to_thread(self.job.cancel)

    async def cleanup(self, restart: bool = False) -> None:
        ports = LocalPortCache.instance()
        for name in ('shell_port', 'iopub_port', 'stdin_port', 'hb_port', 'control_port'):
            if not restart and self.connection_info.get(name):
                ports.return_port(self.connection_info[name])

    async def pre_launch(self, **settings: typing.Any) -> typing.Dict[str, typing.Any]:
        manager = self.parent
        if manager.transport == 'tcp' and not self.connection_info:
            manager.cache_ports = False
            manager.write_connection_file()
        self.connection_info = manager.get_connection_info()
        words = manager.format_kernel_cmd(extra_arguments=settings.pop('extra_arguments', []))
        return await super().pre_launch(cmd=words, **settings)

    async def launch_kernel(self, cmd: typing.List[str], **settings: typing.Any) -> typing.Dict[str, typing.Any]:
        cluster = scored.Cluster()
        options = {'name': 'jupyter-kernel', 'tasks': 1, **self.options}
        directory = {'directory': settings['cwd']} if settings.get('cwd') else {}
        self.job = await asyncio.to_thread(lambda: cluster.submit(cmd, environment=settings.get('env'), **directory, **options))
        while not (await self._refresh()).nodes and not self.job.is_final:
            await asyncio.sleep(_PAUSE)
        if self.job.is_final:
            raise RuntimeError(f'job {self.job.number} of the kernel is {self.job.state}: {"; ".join(self.job.reasons)}')
        return self.connection_info
