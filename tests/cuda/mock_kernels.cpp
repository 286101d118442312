/* The kernels of a model, run by the emulator, as a library that the mock driver loads.
 *
 * KERNELS is the text of the kernels; KERNEL_LIST has a KERNEL(name) for each. */
#include "emulator.hpp"
#include KERNELS
#include "mock.hpp"

template <class... A> constexpr int count(void (*)(A...))
{
    return sizeof...(A);
}

extern "C" const MockKernel gradc_mock_kernels[] = {
#define KERNEL(name)                                                                               \
    {#name, count(name),                                                                           \
     [](unsigned b, unsigned t, void **argument) { emulator::launch(name, b, t, argument); }},
#include KERNEL_LIST
    {nullptr, 0, nullptr},
};
