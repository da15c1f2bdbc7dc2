// Exact first, then the nearest on the same device, then on its family, then what the model says.
#include "db/lookup/search.h"

#include <algorithm>
#include <cmath>

#include "db/lookup/nearest.h"

namespace tilewright::lookup {
namespace {

// Beyond so many doublings a measurement says less than the model does.
constexpr double farthest = 5;
// How many of the nearest problems are tried before giving up on rows whose configs are not legal today.
constexpr size_t neighbours = 8;
// Keys from which on a kernel spends its time in whole tiles.
constexpr int64_t long_enough = 1024;
// A trend between two lengths is followed for so many of their distances, no further.
constexpr double longest_extrapolation = 2;

struct Neighbour {
    const Entry* entry;
    double distance;
};

enum class Kinship { same_device, same_arch, same_family, none };

Kinship kinship(const DeviceClass& a, const DeviceClass& b) {
    if (a == b) return Kinship::same_device;
    if (a.backend != b.backend) return Kinship::none;
    if (a.arch == b.arch) return Kinship::same_arch;
    return !a.family.empty() && a.family == b.family ? Kinship::same_family : Kinship::none;
}

class Search {
public:
    Search(const Index& index, const Question& question, const LookupHooks& hooks,
           const std::function<void(const Entry&, const Config&, const Status&)>& stale)
        : index_(index), question_(question), hooks_(hooks), stale_(stale), kind_(problem_kind(question.problem)),
          sizes_(sizes_of(question.problem, question.device.units)) {}

    Answer run() const {
        Answer answer;
        for (uint32_t device = 0; device < index_.devices().size(); ++device) {
            if (index_.devices()[device] != question_.device) continue;
            const Entry* const entry = index_.find(question_.problem, device);
            if (entry && take({entry, 0}, Provenance::exact, answer)) return answer;
        }
        for (const auto& [kin, provenance] : {std::pair{Kinship::same_device, Provenance::nearest}, {Kinship::same_arch, Provenance::family},
                                              {Kinship::same_family, Provenance::family}}) {
            for (const Neighbour& near : nearest(kin)) {
                if (take(near, provenance, answer)) return answer;
            }
        }
        if (take_prediction(answer)) return answer;
        const Suggestion suggestion = hooks_.suggest ? hooks_.suggest(question_.problem, question_.device, question_.limits) : Suggestion{};
        answer.config = suggestion.config;
        answer.provenance = suggestion.provenance;
        answer.predicted_us = suggestion.predicted_us;
        return answer;
    }

private:
    // The nearest entries measured on devices of that kinship, nearest first; earlier layers first among equals.
    std::vector<Neighbour> nearest(Kinship wanted) const {
        std::vector<Neighbour> found;
        std::vector<bool> counts;
        for (const DeviceClass& device : index_.devices()) counts.push_back(kinship(device, question_.device) == wanted);
        for (const Entry& entry : index_.entries()) {
            if (entry.kind != kind_ || !counts[entry.device]) continue;
            // The same problem on the same device was tried as exact.
            if (wanted == Kinship::same_device && entry.problem == question_.problem) continue;
            const double far = distance(sizes_, sizes_of(entry.problem, index_.devices()[entry.device].units));
            if (far <= farthest || is_beyond(entry)) found.push_back({&entry, far});
        }
        const size_t kept = std::min(found.size(), neighbours);
        std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(kept), found.end(), [](const Neighbour& a, const Neighbour& b) {
            return std::pair(a.distance, a.entry->layer) < std::pair(b.distance, b.entry->layer);
        });
        found.resize(kept);
        return found;
    }

    // The shortest time that was predicted for this very problem on this architecture, whatever the device.
    bool take_prediction(Answer& answer) const {
        const uint64_t hash = hash_of(question_.problem);
        for (const Entry& entry : index_.predictions()) {
            const DeviceClass& device = index_.devices()[entry.device];
            if (entry.hash != hash || entry.problem != question_.problem || device.backend != question_.device.backend || device.arch != question_.device.arch) continue;
            if (take({&entry, 0}, Provenance::predicted, answer)) return true;
        }
        return false;
    }

    // True if the question is longer than an entry that is itself long and fills its device: then no distance is too great,
    // for a longer problem is more of the same.
    bool is_beyond(const Entry& entry) const {
        const Problem& p = entry.problem;
        if (question_.problem.seq_kv <= p.seq_kv || question_.problem.seq_q < p.seq_q || p.seq_kv < long_enough) return false;
        return std::min(sizes_.fullness, sizes_of(p, index_.devices()[entry.device].units).fullness) >= 0;
    }

    // The fastest candidate of the entry that is legal and accurate enough becomes the answer; false if there is none.
    bool take(const Neighbour& near, Provenance provenance, Answer& answer) const {
        const Candidate* const first = index_.candidates(*near.entry);
        std::vector<const Candidate*> order;
        for (const Candidate* candidate = first; candidate != first + near.entry->count; ++candidate) order.push_back(candidate);
        if (provenance == Provenance::nearest) follow_trend(*near.entry, order);
        for (const Candidate* const candidate : order) {
            const bool accurate = std::isinf(question_.limits.max_error) ||
                                  (candidate->error >= 0 && static_cast<double>(candidate->error) <= question_.limits.max_error);
            if (!accurate) continue;
            const Config& config = index_.config(*candidate);
            if (!is_legal(question_.problem, question_.limits, config).ok()) {
                report_if_stale(*near.entry, config);
                continue;
            }
            answer = {config, provenance, near.entry, candidate, near.distance, differences(question_.problem, near.entry->problem), 0};
            const Kinship kin = kinship(index_.devices()[near.entry->device], question_.device);
            if (kin == Kinship::same_arch) answer.differences |= differs_device;
            if (kin == Kinship::same_family) answer.differences |= differs_arch;
            if (near.entry->old_toolchain) answer.differences |= differs_toolchain;
            return true;
        }
        return false;
    }

    Status is_legal(const Problem& problem, const LookupLimits& limits, const Config& config) const {
        return hooks_.check ? hooks_.check(problem, question_.device, config, limits) : Status();
    }

    // A config that suits its own problem and not the question's is no stale row.
    void report_if_stale(const Entry& entry, const Config& config) const {
        if (index_.devices()[entry.device] != question_.device) return;
        if (Status status = is_legal(entry.problem, {}, config); !status.ok()) stale_(entry, config, status);
    }

    // Above the largest tuned length: orders the candidates by the time that the trend between the two largest lengths gives
    // each of them, instead of taking the winner of the largest as it is.
    void follow_trend(const Entry& last, std::vector<const Candidate*>& order) const {
        if (!is_beyond(last)) return;
        const Entry* const before = shorter_neighbour(last);
        if (!before) return;
        const double known = std::log2(static_cast<double>(last.problem.seq_kv) / static_cast<double>(before->problem.seq_kv));
        const double wanted = std::log2(static_cast<double>(question_.problem.seq_kv) / static_cast<double>(last.problem.seq_kv));
        const double steps = std::min(wanted / known, longest_extrapolation);
        const auto predicted = [&](const Candidate* candidate) {
            const Candidate* const first = index_.candidates(*before);
            for (const Candidate* earlier = first; earlier != first + before->count; ++earlier) {
                if (index_.config(*earlier) == index_.config(*candidate)) {
                    return std::log2(candidate->median_us) + steps * std::log2(candidate->median_us / earlier->median_us);
                }
            }
            // Not among the fastest of the shorter one. Judged by the winner's growth, which flatters neither.
            return std::log2(candidate->median_us) + steps * std::log2(index_.candidates(last)->median_us / first->median_us);
        };
        std::stable_sort(order.begin(), order.end(), [&](const Candidate* a, const Candidate* b) { return predicted(a) < predicted(b); });
    }

    // The longest entry of the same device, heads and batch that is clearly shorter than `last`, if `last` is the longest such.
    const Entry* shorter_neighbour(const Entry& last) const {
        const Entry* found = nullptr;
        for (const Entry& entry : index_.entries()) {
            const Problem& p = entry.problem;
            const Problem& q = last.problem;
            if (entry.kind != last.kind || entry.device != last.device || p.batch != q.batch || p.heads_q != q.heads_q || p.heads_kv != q.heads_kv) continue;
            if (p.window_left != q.window_left || p.window_right != q.window_right || p.deterministic != q.deterministic || p.packed != q.packed) continue;
            if (p.seq_kv > q.seq_kv && p.seq_q >= q.seq_q) return nullptr;
            const bool shorter = p.seq_kv * 3 <= q.seq_kv * 2 && p.seq_q <= q.seq_q;
            if (shorter && (!found || p.seq_kv > found->problem.seq_kv)) found = &entry;
        }
        return found;
    }

    const Index& index_;
    const Question& question_;
    const LookupHooks& hooks_;
    const std::function<void(const Entry&, const Config&, const Status&)>& stale_;
    uint64_t kind_;
    Sizes sizes_;
};

}  // namespace

Answer search(const Index& index, const Question& question, const LookupHooks& hooks,
              const std::function<void(const Entry&, const Config&, const Status&)>& stale) {
    return Search(index, question, hooks, stale).run();
}

}  // namespace tilewright::lookup
