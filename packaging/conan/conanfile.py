"""Semel as a package of Conan 2: `conan create packaging/conan -s compiler.cppstd=20`.

What Semel links comes from the system, not from other recipes: libraft 0.22 and Debian's RocksDB
are what is tested. Where apt is the package manager its packages are asked for by name, and
installed with `-c tools.system.package_manager:mode=install`; on other systems cmake says what it
does not find. The package has the files of `cmake --install`, so `find_package(Semel)` is the one
that docs/packaging.md describes, with the same targets. For other generators the components are
read from its files for pkg-config, which name the same libraries.
"""

import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy
from conan.tools.system.package_manager import Apt

SOURCES = ('CMakeLists.txt', 'LICENSE', 'base/*', 'bindings/c/*', 'cmake/*', 'engine/*',
           'gateway/*', 'include/*', 'lua_compat/*', 'net/*', 'packaging/completion.py',
           'packaging/manual.py', 'patterns/*', 'replication/*', 'storage/*', 'tools/semel/*')

# Of each part: packages that must be there, and such of which one must be. 1.81 is Debian 12's,
# 1.83 is Debian 13's and Ubuntu 24.04's.
BOOST = ('libboost1.83-dev', 'libboost1.81-dev', 'libboost1.88-dev')
CONTEXT = ('libboost-context1.83-dev', 'libboost-context1.81-dev', 'libboost-context1.88-dev')
SYSTEM = {
    'core': (('libxxhash-dev', 'libssl-dev'), (BOOST,)),
    'storage': (('librocksdb-dev',), ()),
    'replication': (('libraft-dev',), ()),
    'net': (('libluajit-5.1-dev', 'libfmt-dev', 'libspdlog-dev', 'libcli11-dev',
             'libtomlplusplus-dev'), (CONTEXT,)),
    'c': (('librocksdb-dev',), ()),
    'tools': (('libcli11-dev', 'libfmt-dev', 'zlib1g-dev', 'libzstd-dev'), ()),
}
# What files for pkg-config require beside our own, as the linker names it.
OF_THE_SYSTEM = {'libcrypto': 'crypto', 'libssl': 'ssl', 'raft': 'raft'}


class SemelRecipe(ConanFile):
    name = 'semel'
    description = 'Embeddable dedup and idempotency engine'
    license = 'Apache-2.0'
    topics = ('idempotency', 'deduplication', 'redis')
    package_type = 'static-library'
    settings = ('os', 'arch', 'compiler', 'build_type')
    # As for a project that embeds Semel, only the core unless more is asked for. There is no AUTO:
    # what is in a package must follow from its options.
    options = {part: [True, False] for part in SYSTEM if part != 'core'}
    default_options = {part: False for part in SYSTEM if part != 'core'}

    def set_version(self):
        header = self._root / 'include/semel/version.hpp'
        self.version = re.search(r'#define SEMEL_VERSION "(.*)"', header.read_text()).group(1)

    @property
    def _root(self):
        return Path(self.recipe_folder).parents[1]

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, self._root, self.export_sources_folder)

    def layout(self):
        self.folders.build = 'build'
        self.folders.generators = 'build/generators'

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != 'Linux':
            raise ConanInvalidConfiguration('Semel runs on Linux')
        if self.options.replication and not self.options.storage:
            raise ConanInvalidConfiguration('replication needs -o "semel/*:storage=True"')

    def system_requirements(self):
        apt = Apt(self)
        for part, (all_of, one_of) in SYSTEM.items():
            if part != 'core' and not self.options.get_safe(part):
                continue
            apt.install(list(all_of), update=True, check=True)
            for names in one_of:
                apt.install_substitutes(*[[name] for name in names], update=True, check=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        for part in self.default_options:
            toolchain.cache_variables[f'SEMEL_{part.upper()}'] = bool(self.options.get_safe(part))
        for part in ('TESTS', 'BENCH', 'EXAMPLES'):
            toolchain.cache_variables[f'SEMEL_{part}'] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, 'LICENSE', self.source_folder, Path(self.package_folder) / 'licenses')
        CMake(self).install()

    def package_info(self):
        # Targets are those of our own SemelConfig.cmake, which also finds what they link.
        self.cpp_info.set_property('cmake_find_mode', 'none')
        files = sorted((Path(self.package_folder) / 'lib/pkgconfig').glob('*.pc'))
        ours = [path.stem for path in files]
        for path in files:
            component = self.cpp_info.components[path.stem]
            component.set_property('pkg_config_name', path.stem)
            component.builddirs = ['lib/cmake/Semel']
            said = dict(re.findall(r'^(\w+): (.*)$', path.read_text(), re.MULTILINE))
            libraries = re.findall(r'(?:^| )-l(\S+)', said['Libs'])
            component.libs = [name for name in libraries if name.startswith('semel')]
            component.system_libs = [name for name in libraries if not name.startswith('semel')]
            if '-pthread' in said['Libs']:
                component.system_libs.append('pthread')
            for required in re.findall(r'[a-z][\w-]*', said.get('Requires', '')):
                if required in ours:
                    component.requires.append(required)
                else:
                    component.system_libs.append(OF_THE_SYSTEM[required])
