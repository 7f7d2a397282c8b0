#include <iostream>
#include <kplan/kplan.hpp>
int main() {
  kplan::PlanBuilder builder("even-exchange");
  builder.buffer("A", kplan::Scalar::f64, {"size"}).buffer("B", kplan::Scalar::f64, {"size"});
  builder.communicate("exchange", "A[j]@i <<= B[i]@j where i in world, j in world, i % 2 == 0");
  kplan::transport::run_local(4, [&](auto transport) {         // or, under mpirun: auto transport = kplan::transport::mpi_world();
    kplan::Engine engine(transport);
    kplan::Executable exchange = engine.compile(builder.build());
    std::vector<double> A(engine.size()), B(engine.size(), engine.rank() + 1.0);
    exchange.bind("A", A);
    exchange.bind("B", B);
    exchange.run();                                            // again and again, at the cost of the bytes
    if (engine.rank() == 2) std::cout << A[0] << ' ' << A[1] << ' ' << A[2] << ' ' << A[3] << '\n';  // 1 2 3 4
  });
}
