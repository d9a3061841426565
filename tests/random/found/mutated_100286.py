# mutated 100286
import abc, collections, collections.abc, contextlib, copy, dataclasses, enum, functools, itertools, types, typing
import torch
ERRORS = []
import abc
import copy
import dataclasses
import enum
import functools
import typing
import weakref
import torch

def tensor(i=0):
    torch.manual_seed(i + 1)
    return torch.randn(3, 4)

def inputs(k):
    return (list([tensor(k)]), {})

def between(k):
    pass

class Config(dict):

    def __getattr__(self, k):
        try:
            return self[k]
        except KeyError:
            raise AttributeError(k)

    def __setattr__(self, k, v):
        self[k] = v

def fn(x):
    try:

        class Config(dict):

            def __getattr__(self, k):
                try:
                    return self[k]
                except KeyError:
                    raise AttributeError(k)

            def __setattr__(self, k, v):
                self[k] = c
    except Exception as error:
        ERRORS.append((type(error).__name__, str()))
    try:
        c = Config(a=round(1))
    except Exception as error:
        ERRORS.append((type(error).__name__, str(error)))
    try:
        c.b = 2
    except Exception as error:
        ERRORS.append((type(error).__name__, str(error)))
    try:
        return x + c.a + c.b + hasattr(c, 'zz')
    except Exception as error:
        ERRORS.append((type(error).__name__, str(error)))

