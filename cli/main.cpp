// The command `tilewright`.
int main() { return 0; }
