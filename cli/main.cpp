// The command `tilewright`.
#include "cli/cli.h"

int main(int count, char** values) { return tilewright::cli::run(tilewright::cli::Arguments(values + 1, values + count)); }
