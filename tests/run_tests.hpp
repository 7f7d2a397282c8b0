#pragma once

namespace kplan::tests {

/// Runs the cases of this program that its command line selects, as every main of the tests does. Returns how many
/// failed, or the error of the command line. One report is enough where every process runs all cases: the others do
/// not report.
int run_tests(int argc, char** argv, bool reports);

}  // namespace kplan::tests
