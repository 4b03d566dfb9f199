// The report of a crash: the signal, its address and a stack trace, on standard error and in the
// operator log's file. Then the signal takes its default effect, so that a core is written if the
// system is configured for it.
#pragma once

#include <string>

namespace semel::tool {

/// From now on SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGABRT and uncaught exceptions are
/// reported. `log_file`: also there; empty: standard error is the log. Once in a
/// process, before the first thread. Not in a build with a sanitizer, which reports by itself.
void report_crashes(const std::string& log_file);

/// This thread can report that its stack is used up: a stack of its own for the report. Costs
/// nothing when it is called again.
void arm_thread();

}  // namespace semel::tool
