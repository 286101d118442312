/* What the mock driver and the kernels that it runs know of each other. */
#ifndef GRADC_TESTS_CUDA_MOCK_HPP
#define GRADC_TESTS_CUDA_MOCK_HPP

struct MockKernel {
    const char *name; /* nullptr after the last */
    int arguments;
    void (*run)(unsigned blocks, unsigned threads, void **argument);
};

#endif
