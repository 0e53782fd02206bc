"""A build directory: what configure found, and how mpirun finds the component there without installing it."""
import os
import re
import sys


class Build:
    def __init__(self, directory):
        self.directory = os.path.abspath(directory)
        makefile = os.path.join(self.directory, "Makefile")
        if not os.path.exists(makefile):
            sys.exit(f"{self.directory} is no build directory: it has no Makefile")
        variables = dict(re.findall(r"^(\w+) = (.*)$", open(makefile).read(), re.M))
        self.mpirun, self.mpicc, self.ompi_info = variables["MPIRUN"], variables["MPICC"], variables["OMPI_INFO"]
        self.series, self.system_plugins = variables["OMPI_SERIES"], variables["OMPI_PLUGINDIR"]
        self.plugins = os.path.join(self.directory, ".libs")
        self.needs(".libs/mca_coll_gpurdma.so", "make")

    def path(self, name):
        return os.path.join(self.directory, name)

    def needs(self, name, command):
        if not os.path.exists(self.path(name)):
            sys.exit(f"{self.path(name)} is missing: run `{command}` there first")

    def environment(self):
        """Each release finds a component outside of its own directory in another way."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_MCA_coll", "GPURDMA_"))}
        path = f"{self.plugins}:{self.system_plugins}"
        if self.series == "4.1":
            path = f"SYS_DEFAULT:{self.plugins}:USER_DEFAULT"  # it stops at a directory that does not exist
        if self.series == "5.0":
            env["PMIX_MCA_mca_base_component_show_load_errors"] = "none"  # PMIx reads the path too
        env["OMPI_MCA_mca_base_component_path"] = path
        # All ranks are on this machine; over other interfaces 5.0 complains where they have no route to themselves.
        env.setdefault("OMPI_MCA_btl_tcp_if_include", "lo")
        return env

    def mpirun_command(self, ranks, mca, options=()):
        command = [self.mpirun] + (["--allow-run-as-root"] if os.getuid() == 0 else []) + ["-n", str(ranks)]
        command += options
        for name, value in mca.items():
            command += ["--mca", name, str(value)]
        return command
