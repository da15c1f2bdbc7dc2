// Is a page well formed? For the tests of reports.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::test {

// What is wrong with `page` as XML: a tag that is not closed or not open, an attribute without quotes, a bare & or <, a link that leads nowhere.
// Empty: nothing.
inline std::string markup_fault(std::string_view page) {
    std::vector<std::string> open;
    for (size_t at = 0; at < page.size(); ++at) {
        if (page[at] == '&') {
            const std::string_view entity = page.substr(at, page.find(';', at) - at);
            if (entity != "&amp" && entity != "&lt" && entity != "&gt" && entity != "&quot") return "a bare &: " + std::string(page.substr(at, 40));
        }
        if (static_cast<unsigned char>(page[at]) < 0x20 && page[at] != '\n') return "a control character";
        if (page[at] != '<') continue;
        const size_t end = page.find('>', at);
        if (end == std::string_view::npos) return "a tag without an end: " + std::string(page.substr(at, 40));
        std::string_view tag = page.substr(at + 1, end - at - 1);
        at = end;
        if (tag.starts_with('!')) continue;
        const std::string name(tag.substr(0, tag.find_first_of(" /", 1)));
        if (tag.starts_with('/')) {
            if (open.empty() || "/" + open.back() != name) return "<" + name + "> closes nothing, open is " + (open.empty() ? "nothing" : open.back());
            open.pop_back();
            continue;
        }
        if (name.empty() || tag.find('<') != std::string_view::npos) return "a bare <: " + std::string(tag.substr(0, 40));
        std::string_view attributes = tag.substr(name.size());
        const bool closed = attributes.ends_with('/');
        if (closed) attributes.remove_suffix(1);
        while (!attributes.empty()) {
            const size_t quote = attributes.find("=\""), close = attributes.find('"', quote + 2);
            if (attributes[0] != ' ' || quote == std::string_view::npos || close == std::string_view::npos)
                return "<" + name + "> has a wrong attribute: " + std::string(attributes);
            if (attributes.substr(0, quote) == " href") {
                const std::string target(attributes.substr(quote + 2, close - quote - 2));
                if (!target.starts_with("#") || page.find("id=\"" + target.substr(1) + "\"") == std::string_view::npos)
                    return "a link leads nowhere: " + target;
            }
            attributes.remove_prefix(close + 1);
        }
        if (!closed) open.push_back(name);
    }
    return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

}  // namespace tilewright::test
