#include <cstdio>
int main() { std::puts("cutaway"); }
