// SHA-1 as text.
#include "core/sha1.h"

#include <boost/uuid/detail/sha1.hpp>

namespace tilewright {

std::string sha1(std::string_view bytes) {
    boost::uuids::detail::sha1 hash;
    hash.process_bytes(bytes.data(), bytes.size());
    unsigned int digest[5];
    hash.get_digest(digest);
    std::string hex;
    for (unsigned int word : digest)
        for (int shift = 28; shift >= 0; shift -= 4) hex += "0123456789abcdef"[word >> shift & 15];
    return hex;
}

}  // namespace tilewright
