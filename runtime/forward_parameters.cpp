// Checks of what a call is given beside its tensors, and its parameters.
#include "runtime/forward_parameters.h"

#include "backends/launch.h"

namespace tilewright {

template <class Tensors>
Status check_variants(const Problem& problem, const Tensors& t) {
    bool rows = problem.batch * problem.seq_q > 0;
    TILEWRIGHT_RETURN_IF_ERROR(check_pointer("bias", t.bias.data, problem.bias && rows && problem.seq_kv > 0));
    TILEWRIGHT_RETURN_IF_ERROR(check_pointer("alibi_slope", t.alibi_slope, problem.alibi && rows));
    TILEWRIGHT_RETURN_IF_ERROR(check_pointer("sink", t.sink, problem.sink && rows));
    if (problem.softcap && !(t.softcap > 0)) return invalid_argument("softcap is " + std::to_string(t.softcap) + "; it must be positive");
    return {};
}

template <class Tensors>
kernel::ForwardParameters forward_parameters(const Problem& problem, const Tensors& t, const Extent (&tensors)[4]) {
    kernel::ForwardParameters parameters = sized_parameters(problem, t.scale.value_or(default_scale(problem)), t.softcap);
    parameters.query = t.query.data, parameters.key = t.key.data, parameters.value = t.value.data, parameters.out = t.out.data, parameters.lse = t.lse;
    parameters.bias = t.bias.data, parameters.slope = t.alibi_slope, parameters.sink = t.sink;
    parameters.query_strides = strides_of(tensors[0]), parameters.key_strides = strides_of(tensors[1]);
    parameters.value_strides = strides_of(tensors[2]), parameters.out_strides = strides_of(tensors[3]);
    parameters.bias_strides = {t.bias.batch_stride, t.bias.head_stride, t.bias.row_stride};
    parameters.bias_column_stride = t.bias.column_stride;
    return parameters;
}

template Status check_variants(const Problem&, const ForwardTensors&);
template Status check_variants(const Problem&, const DecodeTensors&);
template kernel::ForwardParameters forward_parameters(const Problem&, const ForwardTensors&, const Extent (&)[4]);
template kernel::ForwardParameters forward_parameters(const Problem&, const DecodeTensors&, const Extent (&)[4]);

}  // namespace tilewright
