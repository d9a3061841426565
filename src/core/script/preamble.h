// Python text that scripts share. Not for use outside core/script.
#pragma once

namespace cutaway::script {

/// The numbers of core/tensor/random.cc, bit for bit: element k is a function of (seed, k) in 64-bit arithmetic.
inline constexpr const char* kRandomNumbers = R"py(

def mix(x):
    """splitmix64's finaliser on int64 tensors; shifts must not drag the sign along."""
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -0x40A7B892E31B1A47
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -0x6B2FB644ECCEEE15
    return x ^ ((x >> 31) & 0x1FFFFFFFF)


def random_storage(size, dtype, device, seed, range=None):
    """A storage of `size` bytes: normal numbers, fair bools, whole numbers within the range; the same on every machine."""
    step = torch.tensor(-0x61C8864680B583EB)
    key = mix(torch.tensor(seed) * step + 1)
    real = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}.get(dtype, dtype)
    count = size // real.itemsize
    element = torch.arange(count)
    bits = [mix(key + (element * 4 + draw + 1) * step) for draw in (0, 1, 2, 3)]
    if real == torch.float8_e8m0fnu:
        data = (124 + below(bits[0], 7)).to(torch.uint8)
    elif real.is_floating_point and range is None:
        total = sum((b & 0x1FFFFF) + ((b >> 21) & 0x1FFFFF) + ((b >> 42) & 0x1FFFFF) for b in bits)
        data = (total + 6 - (6 << 21)).to(torch.float64) * 2.0**-21
        if real != torch.float64:
            data = data.to(torch.float32).to(real)
    elif real == torch.bool:
        data = bits[0] < 0
    else:
        first, past = range or (0, 10)
        data = (first + below(bits[0], past - first)).to(real)
    storage = torch.zeros(size, dtype=torch.uint8)
    storage[: count * real.itemsize] = data.view(torch.uint8)
    return storage.to(device).untyped_storage()


def below(bits, n):
    """The remainder of 64 bits taken as an unsigned number."""
    return (((bits >> 1) & 0x7FFFFFFFFFFFFFFF) % n * 2 + (bits & 1)) % n
)py";

/// Storages kept beside the script, as the bytes they are.
inline constexpr const char* kStoredBytes = R"py(

def stored_bytes(path, size, device):
    data = (FOLDER / path).read_bytes()
    if len(data) != size:
        raise SystemExit(f"{path} has {len(data)} bytes and should have {size}")
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).to(device).untyped_storage() if data else torch.empty(0, dtype=torch.uint8, device=device).untyped_storage()
)py";

}  // namespace cutaway::script
