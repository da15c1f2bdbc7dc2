// The acceptance rule.
#include "verify/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tilewright {
namespace {

std::string sentence(const std::string& what, int64_t index, double x, double r, const char* reason) {
    char text[256];
    std::snprintf(text, sizeof text, "%s[%lld] is %.9g where the reference is %.9g: %s", what.c_str(), (long long)index, x, r, reason);
    return text;
}

bool same_special(double x, double r) { return std::isnan(r) ? std::isnan(x) : x == r; }

}  // namespace

Comparison compare(std::span<const double> result, std::span<const double> reference, std::span<const double> naive, const std::string& what, double terms) {
    Comparison c;
    double largest = 0, difference_squares = 0, reference_squares = 0;
    for (size_t i = 0; i < reference.size(); ++i) {
        double x = result[i], r = reference[i];
        if (!std::isfinite(r) || !std::isfinite(x)) {
            if (same_special(x, r)) continue;
            if (!c.passed) continue;
            c.passed = false;
            c.worst = int64_t(i);
            c.failure = sentence(what, c.worst, x, r, "NaN or infinity on one side only");
            continue;
        }
        double error = std::abs(x - r);
        if (c.passed && (c.worst < 0 || error > c.error)) c.worst = int64_t(i);
        c.error = std::max(c.error, error);
        if (std::isfinite(naive[i])) c.naive_error = std::max(c.naive_error, std::abs(naive[i] - r));
        largest = std::max(largest, std::abs(r));
        difference_squares += error * error;
        reference_squares += r * r;
    }
    c.bound = 2 * c.naive_error + 1e-6 * std::max(largest, terms);
    c.relative_error = reference_squares > 0 ? std::sqrt(difference_squares / reference_squares) : difference_squares > 0 ? INFINITY : 0;
    if (c.passed && c.error > c.bound) {
        char reason[96];
        std::snprintf(reason, sizeof reason, "off by %.3g, more than the bound %.3g", c.error, c.bound);
        c.passed = false;
        c.failure = sentence(what, c.worst, result[size_t(c.worst)], reference[size_t(c.worst)], reason);
    }
    return c;
}

}  // namespace tilewright
