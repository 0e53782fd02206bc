// Data-parallel training in C++: every rank computes the gradient of its share of the samples where its memory is, on
// the GPU or on the CPU, and one MPI_Allreduce sums the shares there. The same source for both:
//
//   nvcc -std=c++17 -O2 --extended-lambda train.cu -o train $(mpicc --showme:compile) $(mpicc --showme:link)
//   g++  -std=c++17 -O2 -x c++            train.cu -o train $(mpicc --showme:compile) $(mpicc --showme:link)
//   mpirun -n 4 --mca coll gpurdma ./train
//
// (contrib/examples/build does either, and tells nvcc which flags are for the linker.) A program built by nvcc uses a
// GPU where there is one. The model is linear, y = w x: small enough to read, and its best weights are known.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define ANYWHERE __host__ __device__
template <class Work>
__global__ void run(int n, Work work) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) work(i);
}
#else
#define ANYWHERE
#endif

constexpr int kFeatures = 4096, kSamples = 512, kSteps = 100;  // samples of each rank
constexpr float kRate = 0.03f;

// Where this rank computes: memory, copies and loops.
class Machine {
 public:
  Machine() {
#ifdef __CUDACC__
    int gpus = 0;
    gpu_ = cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0;
    const char* local_rank = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    if (gpu_) must(cudaSetDevice((local_rank ? std::atoi(local_rank) : 0) % gpus));
#endif
  }
  const char* name() const { return gpu_ ? "GPU" : "CPU"; }

  float* memory(size_t n) {
    void* address = nullptr;
#ifdef __CUDACC__
    if (gpu_) {
      must(cudaMalloc(&address, n * sizeof(float)));
      must(cudaMemset(address, 0, n * sizeof(float)));
      return static_cast<float*>(address);
    }
#endif
    address = std::calloc(n, sizeof(float));
    return static_cast<float*>(address);
  }
  void free_memory(float* address) {
#ifdef __CUDACC__
    if (gpu_) return must(cudaFree(address));
#endif
    std::free(address);
  }
  void copy(float* to, const float* from, size_t n) {
#ifdef __CUDACC__
    if (gpu_) return must(cudaMemcpy(to, from, n * sizeof(float), cudaMemcpyDefault));
#endif
    std::memcpy(to, from, n * sizeof(float));
  }
  // work(i) for each i below n, all at once.
  template <class Work>
  void for_each(int n, Work work) {
#ifdef __CUDACC__
    if (gpu_) {
      run<<<(n + 127) / 128, 128>>>(n, work);
      return must(cudaGetLastError());
    }
#endif
    for (int i = 0; i < n; ++i) work(i);
  }
  // Until all that was begun is done. gpurdma would wait for the default stream itself; other MPIs want this.
  void wait() {
#ifdef __CUDACC__
    if (gpu_) must(cudaDeviceSynchronize());
#endif
  }

 private:
#ifdef __CUDACC__
  static void must(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
#endif
  bool gpu_ = false;
};

// The same numbers for the same seed on every machine, from -1 to 1.
struct Random {
  unsigned state;
  float next() {
    state = state * 1664525u + 1013904223u;
    return float(state >> 8) / float(1 << 23) - 1;
  }
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Machine machine;
  if (rank == 0) std::printf("%d ranks, the first one on its %s\n", ranks, machine.name());

  // The truth is the same everywhere, the samples differ from rank to rank.
  std::vector<float> truth(kFeatures), host_x(size_t(kFeatures) * kSamples), host_y(kSamples, 0.0f);
  Random weights{1}, samples{unsigned(rank) + 2};
  for (float& w : truth) w = weights.next();
  const float scale = 1 / std::sqrt(float(kFeatures));
  for (int s = 0; s < kSamples; ++s)
    for (int f = 0; f < kFeatures; ++f) {
      const float x = samples.next() * scale;
      host_x[size_t(f) * kSamples + s] = x;
      host_y[s] += x * truth[f];
    }
  float *x = machine.memory(host_x.size()), *y = machine.memory(kSamples), *error = machine.memory(kSamples);
  float *w = machine.memory(kFeatures), *gradient = machine.memory(kFeatures + 1);  // the last one is the loss
  machine.copy(x, host_x.data(), host_x.size());
  machine.copy(y, host_y.data(), kSamples);
  // Rank 0 says where to begin.
  if (rank == 0) machine.copy(w, std::vector<float>(kFeatures, 0.5f).data(), kFeatures);
  MPI_Bcast(w, kFeatures, MPI_FLOAT, 0, MPI_COMM_WORLD);

  const float all_samples = float(kSamples) * float(ranks);
  float first_loss = 0, loss = 0;
  for (int step = 0; step < kSteps; ++step) {
    machine.for_each(kSamples, [=] ANYWHERE(int s) {
      float sum = -y[s];
      for (int f = 0; f < kFeatures; ++f) sum += x[size_t(f) * kSamples + s] * w[f];
      error[s] = sum;
    });
    machine.for_each(kFeatures + 1, [=] ANYWHERE(int f) {
      float sum = 0;
      for (int s = 0; s < kSamples; ++s) sum += error[s] * (f < kFeatures ? x[size_t(f) * kSamples + s] : error[s]);
      gradient[f] = sum;
    });
    machine.wait();
    MPI_Allreduce(MPI_IN_PLACE, gradient, kFeatures + 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    machine.copy(&loss, gradient + kFeatures, 1);
    loss /= all_samples;
    if (step == 0) first_loss = loss;
    if (rank == 0 && step % 20 == 0) std::printf("step %3d  loss %.3g\n", step, loss);
    machine.for_each(kFeatures, [=] ANYWHERE(int f) { w[f] -= kRate * kFeatures * gradient[f] / all_samples; });
  }
  machine.wait();

  // The ranks never compared weights: equal now means that each allreduce gave all of them the same bits.
  float* const firsts = machine.memory(kFeatures);
  machine.copy(firsts, w, kFeatures);
  MPI_Bcast(firsts, kFeatures, MPI_FLOAT, 0, MPI_COMM_WORLD);
  std::vector<float> mine(kFeatures), theirs(kFeatures);
  machine.copy(mine.data(), w, kFeatures);
  machine.copy(theirs.data(), firsts, kFeatures);
  int alike = std::memcmp(mine.data(), theirs.data(), kFeatures * sizeof(float)) == 0;
  MPI_Allreduce(MPI_IN_PLACE, &alike, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  const bool learned = loss < first_loss / 2;
  if (rank == 0)
    std::printf("step %3d  loss %.3g\nall ranks hold %s\n", kSteps, loss,
                alike ? "the same bits" : "DIFFERENT weights");
  for (float* memory : {x, y, error, w, gradient, firsts}) machine.free_memory(memory);
  MPI_Finalize();
  return alike && learned ? 0 : 1;
}
