"""Links each part of the package and runs it, by cmake and by pkg-config's files."""

from pathlib import Path

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class SemelTest(ConanFile):
    settings = ('os', 'arch', 'compiler', 'build_type')
    generators = ('PkgConfigDeps', 'VirtualRunEnv')
    test_type = 'explicit'

    def requirements(self):
        # For the program and the shared library; archives alone would not ask for `run`.
        self.requires(self.tested_reference_str, run=True)

    def layout(self):
        cmake_layout(self)

    def _parts(self):
        options = self.dependencies['semel'].options
        wanted = [part for part in ('storage', 'replication', 'net', 'c')
                  if options.get_safe(part)]
        if 'replication' in wanted and 'net' in wanted:
            wanted.append('group')
        return ['core', 'signed', 'json', *wanted]

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.cache_variables['PARTS'] = ';'.join(self._parts())
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        built = Path(self.cpp.build.bindir)
        for name in ('once', 'everything', 'by_pkg_config', 'from_c'):
            if (built / name).exists():
                self.run(str((built / name).resolve()), env='conanrun')
        if self.dependencies['semel'].options.tools:
            self.run('printf "a\\nb\\na\\n" | semel dedup | grep -c . | grep -qx 2 && '
                     'echo "semel dedup: works"', env='conanrun')
