// A small plot as SVG text: axes with ticks, points, lines.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright {

// `text` safe inside HTML and XML text and attributes; control characters become spaces.
std::string escape_markup(std::string_view text);

// At most four significant digits below 1000, no exponent: for people.
std::string short_number(double value);

struct Axis {
    std::string title;
    bool logarithmic = false;
    double low = 0, high = 1;                           // of the values shown
    std::vector<std::pair<double, std::string>> ticks;  // value and label
};
// Each widens a range that is empty. A logarithmic range is of values above 0.
Axis linear_axis(std::string title, double low, double high);
Axis log_axis(std::string title, double low, double high);
Axis category_axis(std::string title, const std::vector<std::string>& labels);  // label i stands at i

// Coordinates are values of the axes; what is outside is clamped to the border. `style` is a CSS class of the page.
class Plot {
public:
    Plot(int width, int height, Axis x, Axis y) : width_(width), height_(height), x_(std::move(x)), y_(std::move(y)) {}
    void point(double x, double y, std::string_view style, std::string_view tooltip);
    void line(const std::vector<std::pair<double, double>>& points, std::string_view style);
    std::string svg(std::string_view description) const;

private:
    double place_x(double value) const;
    double place_y(double value) const;

    int width_, height_;
    Axis x_, y_;
    std::string marks_;
};

}  // namespace tilewright
