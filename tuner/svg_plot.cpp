// Scales, ticks and the text of an SVG element.
#include "tuner/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tilewright {
namespace {

constexpr int left_margin = 64, right_margin = 12, top_margin = 10, bottom_margin = 40;  // pixels

std::string pixels(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", value);
    return text;
}

// The largest of 1, 2, 5 times a power of ten that gives at least four ticks.
double tick_step(double range) {
    const double power = std::pow(10, std::floor(std::log10(range / 4)));
    for (const double factor : {5., 2.})
        if (power * factor <= range / 4) return power * factor;
    return power;
}

std::vector<std::pair<double, std::string>> linear_ticks(double low, double high) {
    std::vector<std::pair<double, std::string>> ticks;
    const double step = tick_step(high - low);
    for (double i = std::ceil(low / step); i * step <= high; ++i) ticks.emplace_back(i * step, short_number(i * step));
    return ticks;
}

double position(const Axis& axis, double value) {
    value = std::clamp(value, axis.low, axis.high);
    if (axis.logarithmic) return std::log(value / axis.low) / std::log(axis.high / axis.low);
    return (value - axis.low) / (axis.high - axis.low);
}

}  // namespace

std::string escape_markup(std::string_view text) {
    std::string result;
    for (const char c : text) {
        switch (c) {
            case '&':
                result += "&amp;";
                break;
            case '<':
                result += "&lt;";
                break;
            case '>':
                result += "&gt;";
                break;
            case '"':
                result += "&quot;";
                break;
            default:
                result += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
        }
    }
    return result;
}

std::string short_number(double value) {
    const double size = std::abs(value);
    char text[64];
    if (size < 1000)
        std::snprintf(text, sizeof text, size > 0 && size < 1e-4 ? "%.3e" : "%.4g", value);
    else
        std::snprintf(text, sizeof text, "%.0f", value);
    return text;
}

Axis linear_axis(std::string title, double low, double high) {
    if (!(high > low)) high = low + 1;
    return {std::move(title), false, low, high, linear_ticks(low, high)};
}

Axis log_axis(std::string title, double low, double high) {
    low /= 1.05, high *= 1.05;
    Axis axis{std::move(title), true, low, high, {}};
    if (high / low < 8) {
        axis.ticks = linear_ticks(low, high);
        return axis;
    }
    const bool sparse = high / low > 1000;
    for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10)
        for (const double factor : {1., 2., 5.})
            if (const double value = power * factor; value >= low && value <= high && (factor == 1 || !sparse))
                axis.ticks.emplace_back(value, short_number(value));
    return axis;
}

Axis category_axis(std::string title, const std::vector<std::string>& labels) {
    Axis axis{std::move(title), false, -0.5, static_cast<double>(labels.size()) - 0.5, {}};
    for (size_t i = 0; i < labels.size(); ++i) axis.ticks.emplace_back(static_cast<double>(i), labels[i]);
    return axis;
}

double Plot::place_x(double value) const { return left_margin + position(x_, value) * (width_ - left_margin - right_margin); }
double Plot::place_y(double value) const { return height_ - bottom_margin - position(y_, value) * (height_ - top_margin - bottom_margin); }

void Plot::point(double x, double y, std::string_view style, std::string_view tooltip) {
    marks_ += "<circle class=\"" + std::string(style) + "\" cx=\"" + pixels(place_x(x)) + "\" cy=\"" + pixels(place_y(y)) + "\" r=\"3\"><title>" +
              escape_markup(tooltip) + "</title></circle>\n";
}

void Plot::line(const std::vector<std::pair<double, double>>& points, std::string_view style) {
    marks_ += "<polyline class=\"" + std::string(style) + "\" points=\"";
    for (const auto& [x, y] : points) marks_ += pixels(place_x(x)) + "," + pixels(place_y(y)) + " ";
    marks_ += "\"/>\n";
}

std::string Plot::svg(std::string_view description) const {
    const auto text = [](double x, double y, const char* anchor, const std::string& words, const std::string& extra = "") {
        return "<text x=\"" + pixels(x) + "\" y=\"" + pixels(y) + "\" text-anchor=\"" + anchor + "\"" + extra + ">" + escape_markup(words) + "</text>\n";
    };
    const auto grid = [](double x1, double y1, double x2, double y2) {
        return "<line class=\"grid\" x1=\"" + pixels(x1) + "\" y1=\"" + pixels(y1) + "\" x2=\"" + pixels(x2) + "\" y2=\"" + pixels(y2) + "\"/>\n";
    };
    const double right = width_ - right_margin, bottom = height_ - bottom_margin, middle = (top_margin + bottom) / 2;
    std::string result = "<svg role=\"img\" width=\"" + std::to_string(width_) + "\" height=\"" + std::to_string(height_) + "\" viewBox=\"0 0 " +
                         std::to_string(width_) + " " + std::to_string(height_) + "\"><title>" + escape_markup(description) + "</title>\n";
    for (const auto& [value, label] : x_.ticks)
        result += grid(place_x(value), top_margin, place_x(value), bottom) + text(place_x(value), bottom + 16, "middle", label);
    for (const auto& [value, label] : y_.ticks)
        result += grid(left_margin, place_y(value), right, place_y(value)) + text(left_margin - 6, place_y(value) + 4, "end", label);
    result += text((left_margin + right) / 2, height_ - 6, "middle", x_.title);
    result += text(12, middle, "middle", y_.title, " transform=\"rotate(-90 12 " + pixels(middle) + ")\"");
    return result + marks_ + "</svg>\n";
}

}  // namespace tilewright
