// The main of tests whose ranks are threads.
#include "tests/run_tests.hpp"

int main(int argc, char** argv) { return kplan::tests::run_tests(argc, argv, true); }
