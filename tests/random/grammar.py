"""The tables that random programs are drawn from: expressions by type, statements, and declarations at the top of a module.

Types are letters. F is a tensor of the program's main shape (n, m), R one of shape (m,), S one of shape (), so that every
operator below fits by broadcasting. I, D, B, T are int, float, bool and text. LF and LI are lists of F and of I, DF and DI
dicts from text, SI a set of ints, PF a tuple of F, O an instance of a class of the program, C a callable from F to F.

Placeholders:  <F> an expression of that type; <F^> the same, without the names that this production binds; <F!> a variable that
may be bound again here; <F@> a visible variable whose object may be changed; <F:a> a new variable, called <a> from then on;
$a a fresh name; <block> statements; <RET> what the enclosing function returns.
"""

# (weight, text) or (weight, text, {"$a": type bound inside})
EXPRESSIONS = {
    "F": [
        (6, "<F> + <F>"),
        (4, "<F> * <D>"),
        (3, "<F> - <R>"),
        (2, "<F> * <S>"),
        (2, "-<F>"),
        (2, "<I> + <F>"),
        (2, "<F> / (<F>.abs() + 1)"),
        (2, "<D> - <F>"),
        (3, "torch.relu(<F>)"),
        (3, "torch.sin(<F>)"),
        (2, "<F>.tanh()"),
        (2, "torch.where(<F> > <D>, <F>, <F>)"),
        (2, "F.softmax(<F>, dim=-1)"),
        (1, "F.layer_norm(<F>, <F>.shape[-1:])"),
        (1, "F.gelu(<F>, approximate='tanh')"),
        (1, "torch.clamp(<F>, min=-1.0, max=<D>)"),
        (1, "torch.stack([<F>, <F>]).mean(0)"),
        (1, "torch.cat([<F>, <F>], dim=0)[: <F>.shape[0]]"),
        (1, "torch.cat((<F>, <F>), -1).chunk(2, dim=-1)[<B>]"),
        (1, "<F>.t().contiguous().t()"),
        (1, "<F>.reshape(-1).view(<F>.shape)"),
        (1, "<F>.unsqueeze(0).squeeze(0)"),
        (1, "<F>.flip(0)"),
        (1, "<F>[...]"),
        (1, "<F>[::-1 if False else 1]"),
        (1, "torch.zeros_like(<F>)"),
        (1, "<F>.new_ones(<F>.size())"),
        (1, "torch.full_like(<F>, <D>)"),
        (1, "<F>.clone()"),
        (1, "<F>.detach() * <D>"),
        (1, "<F>.float().to(<F>.dtype)"),
        (1, "<F> @ (<F>.t() @ <F>) / <I3>"),
        (1, "<F>.masked_fill(<F> < 0, <D>)"),
        (1, "<F>.cumsum(dim=1)"),
        (1, "operator.add(<F>, <F>)"),
        (1, "functools.reduce(operator.add, <LF>, <F>)"),
        (1, "functools.reduce(lambda $a, $b: $a * 0.5 + $b, <LF^>, <F^>)", {"$a": "F", "$b": "F"}),
        (1, "functools.partial(torch.add, <F>)(<F>)"),
        (3, "<LF>[<K>]"),
        (1, "<LF>[-1]"),
        (2, "<DF>['a']"),
        (1, "<DF>.get('b', <F>)"),
        (1, "<DF>.get(<T>, <F>)"),
        (2, "<PF>[0]"),
        (3, "(<F> if <B> else <F>)"),
        (2, "<C>(<F>)"),
        (1, "(lambda $a: <F>)(<F^>)", {"$a": "F"}),
        (1, "(lambda $a, *, $b=<D^>: $a * $b)(<F^>)"),
        (1, "sum(<LF>, <F>)"),
        (1, "sum(<LF>)"),
        (1, "max(<LF>, key=lambda $a: $a.shape[0])"),
        (2, "<O>.w"),
        (1, "<O>.scale_by(<D>)"),
        (1, "<O>.twice"),
        (1, "<O>(<F>)"),
        (1, "<O>[<I3>]"),
        (1, "helper(<F>, <I3>)"),
        (1, "kwargs_helper(<F>, k=<D>)"),
        (1, "kwargs_helper(<F>, <F>, *<LF>, extra=<D>)"),
        (1, "kwargs_helper(*<PF>, **<DF>)"),
        (1, "recursive(<F>, <I3>)"),
        (1, "decorated(<F>)"),
        (1, "G_W * <F>"),
        (1, "G_TABLE['f'](<F>)"),
        (1, "G_BOX.w + <F>"),
        (1, "next(iter(<LF>))"),
        (1, "[*<LF>, <F>][0]"),
        (1, "{**<DF>, 'z': <F>}['z']"),
        (1, "copy.copy(<LF>)[0]"),
        (1, "linear(<F>)"),
        (1, "torch.nn.functional.dropout(<F>, 0.5, training=<B>)"),
        (1, "<F> + torch.arange(<F>.shape[1], dtype=<F>.dtype)"),
        (1, "<F>.type(torch.float64).to(<F>.dtype)"),
        (2, "breaking(<F>, <I3>)"),
        (2, "breaking_inside(<F>, <I3>)"),
        (1, "Loud(<F>).run(<I3>)"),
        (1, "functools.partial(breaking, k=<I3>)(<F>)"),
        (1, "breaking(*[<F>], **{'k': <I3>})"),
        (1, "<F>.roll(<I>, 0)"),
        (1, "torch.cat([<F>] * 3)[<I> % 3 :][: <F>.shape[0]]"),
        (1, "torch.cat([<F>, <F>, <F>], 1)[: <F>.shape[0], <F>.shape[1] : 2 * <F>.shape[1]]"),
    ],
    "R": [
        (3, "<F>[0]"),
        (3, "<F>.sum(0)"),
        (2, "<F>.mean(dim=0)"),
        (2, "<F>.max(dim=0).values"),
        (1, "<F>.max(0)[0]"),
        (1, "<F>[-1, :]"),
        (1, "<R> * <D>"),
        (1, "<R> + <R>"),
        (1, "torch.ones(<F>.shape[1])"),
        (1, "list(<F>)[0]"),
        (1, "<F>.unbind(0)[0]"),
        (1, "torch.linspace(0, 1, <F>.size(1))"),
    ],
    "S": [
        (3, "<F>.sum()"),
        (2, "<F>.mean()"),
        (1, "<F>.max()"),
        (1, "<R>.norm()"),
        (1, "<S> * <D>"),
        (1, "torch.tensor(<D>)"),
        (1, "torch.tensor(<I>)"),
        (1, "<F>[0, 0]"),
        (1, "<F>.std()"),
        # sizes that numbers decide
        (1, "<F>[: <I>].sum()"),
        (1, "<F>[<I> :, : <I>].sum()"),
        (1, "<F>[..., :: <I3> + 1].sum()"),
        (1, "<F>.reshape(-1)[<I> : <I>].sum()"),
        (1, "<F>.split(<I3> + 1, 1)[-1].sum()"),
        (1, "F.pad(<F>, (<I> % 3, 0, -(<I> % 2), 0)).mean()"),
    ],
    "I": [
        (4, "<I3>"),
        (3, "<I> + <I>"),
        (2, "<I> * <I3>"),
        (1, "<I> - <I>"),
        (1, "<I> % 5"),
        (1, "<I> // 2"),
        (1, "-<I>"),
        (1, "abs(<I>)"),
        (3, "<F>.shape[0]"),
        (2, "<F>.size(1)"),
        (1, "<F>.numel()"),
        (1, "<F>[: <I>].shape[0]"),
        (1, "<F>[<I> :, <I> :].numel()"),
        (1, "<F>.dim()"),
        (2, "len(<LF>)"),
        (2, "len(<LI>)"),
        (1, "len(<F>)"),
        (1, "len(<T>)"),
        (1, "sum(<LI>)"),
        (1, "min(<I>, <I>)"),
        (1, "max(<LI>, default=0)"),
        (1, "<DI>.get('p', <I>)"),
        (1, "<O>.n"),
        (1, "<O>.bump()"),
        (1, "len(<SI>)"),
        (1, "int(<D>)"),
        (1, "int(<B>)"),
        (1, "(<I> if <B> else <I>)"),
        (1, "G_N"),
        (1, "ord(<T>[0]) if <T> else 0"),
        (1, "hash(<I>) % 7"),
        (1, "divmod(<I>, 3)[1]"),
        (1, "round(<D>)"),
        (1, "pow(<I>, 2, 7)"),
        (1, "<I> & 3 | 4 ^ <I>"),
        (1, "<I3> << 1"),
        (1, "int('12') + <I>"),
        (1, "<T>.count('a')"),
        (1, "sum(1 for $a in <LF^> if $a.dim() == 2)"),
        (1, "sum($a for $a in range(<I3^>))"),
        (1, "Color.RED.value + <I>"),
        (1, "len({$a.shape for $a in <LF^>})"),
        (1, "math.floor(<D>)"),
        (1, "math.prod(<F>.shape)"),
        (1, "Fixed.LIMIT"),
        (1, "point.x + point._replace(x=<I>).x"),
    ],
    "I3": [(2, "0"), (2, "1"), (2, "2"), (1, "3")],
    "K": [(4, "0"), (1, "-1"), (1, "1"), (1, "len(<LF>) - 1")],
    "D": [
        (3, "0.5"),
        (2, "1.5"),
        (1, "-2.0"),
        (1, "<D> * <D>"),
        (1, "<D> + <I>"),
        (1, "<I> / 2"),
        (1, "math.sqrt(abs(<D>))"),
        (1, "float(<I>)"),
        (1, "max(<D>, 0.25)"),
        (1, "(<D> if <B> else <D>)"),
        (1, "float('1.25')"),
        (1, "math.pi"),
        (1, "round(<D>, 2)"),
        (1, "abs(<D>) ** 0.5"),
        (1, "G_SCALE"),
        (1, "<O>.factor"),
    ],
    "B": [
        (3, "<I> > <I>"),
        (2, "<I> == <I>"),
        (2, "<D> < <D>"),
        (2, "not <B>"),
        (2, "<B> and <B>"),
        (2, "<B> or <B>"),
        (2, "<F>.shape[0] > <I3>"),
        (1, "<F>.dtype == torch.float32"),
        (1, "<F>.requires_grad"),
        (1, "torch.is_grad_enabled()"),
        (1, "<F>.is_contiguous()"),
        (1, "isinstance(<F>, torch.Tensor)"),
        (1, "isinstance(<I>, (int, str))"),
        (1, "isinstance(<O>, Box)"),
        (1, "<I> in <LI>"),
        (1, "'a' in <DF>"),
        (1, "<T> not in <DF>"),
        (1, "<I> in <SI>"),
        (1, "<T>.startswith('a')"),
        (1, "<F> is <F>"),
        (1, "<F> is not None"),
        (1, "<LF> is <LF>"),
        (1, "0 < <I> <= 5"),
        (1, "<T> == <T>"),
        (1, "any($a.dim() > 1 for $a in <LF^>)"),
        (1, "all($a > 0 for $a in <LI^>)"),
        (1, "hasattr(<O>, 'missing')"),
        (1, "callable(<C>)"),
        (1, "bool(<LF>)"),
        (1, "bool(<LI>)"),
        (1, "G_FLAG"),
        (1, "<F>.shape == <F>.shape"),
        (1, "type(<O>) is Box"),
        (1, "<PF>[0] is <PF>[-1]"),
        (1, "(<I>, <I>) < (<I>, <I>)"),
        (1, "Color.RED is Color['RED']"),
        (1, "True"),
        (1, "False"),
    ],
    "T": [
        (3, "'a'"),
        (2, "'abc'"),
        (2, "f'v{<I>}'"),
        (1, "f'{<D>:.2f}-{<I>!r:>4}'"),
        (1, "str(<I>)"),
        (1, "<T> + <T>"),
        (1, "<T>.upper()"),
        (1, "','.join([<T>, <T>])"),
        (1, "<T>.replace('a', 'b')"),
        (1, "'%s:%d' % (<T>, <I>)"),
        (1, "'{}-{x}'.format(<T>, x=<I>)"),
        (1, "<T>[::-1]"),
        (1, "<T> * 2"),
        (1, "str(tuple(<F>.shape))"),
        (1, "str(<F>.dtype)"),
        (1, "type(<O>).__name__"),
        (1, "repr(<LI>)"),
        (1, "f'{<F>.shape}'"),
        (1, "' x y '.strip().split()[0]"),
        (1, "'ab'.ljust(4, '.').title()"),
        (1, "repr(<O>)"),
    ],
    "LF": [
        (3, "[<F>, <F>]"),
        (1, "[<F>] * 2"),
        (1, "<LF> + [<F>]"),
        (1, "list(<PF>)"),
        (1, "list(<DF>.values())"),
        (1, "[<F> for $a in <LF^>]", {"$a": "F"}),
        (1, "[<F> for $a in range(<I3^> + 1)]", {"$a": "I"}),
        (1, "[$a * $b for $a, $b in zip(<LF^>, <LF^>)]"),
        (1, "[$a for $a in <LF^> if $a.shape[0] > <I3^>] or [<F^>]"),
        (1, "list(map(torch.relu, <LF>))"),
        (1, "list(map(lambda $a: <F>, <LF^>))", {"$a": "F"}),
        (1, "[$a for $a in produce(<F^>, <I3^> + 1)]"),
        (1, "list(produce(<F>, 2))"),
        (1, "list(reversed(<LF>))"),
        (1, "<LF>[::-1]"),
        (1, "<LF>[:2]"),
        (1, "<LF>.copy()"),
        (1, "sorted(<LF>, key=lambda $a: $a.dim())"),
        (1, "list(itertools.chain(<LF>, [<F>]))"),
        (1, "list(itertools.accumulate(<LF>))"),
        (1, "list(itertools.islice(itertools.cycle(<LF>), 3))"),
        (1, "[$a for $a, $b in itertools.product([<F^>], range(2))]"),
        (1, "[$b for $a, $b in sorted(<DF^>.items(), key=lambda $c: $c[0])]"),
        (1, "[*<LF>, *<PF>]"),
        (1, "list(<F>.split(1, dim=0))[:1] + [<F>]"),
        (1, "list(filter(lambda $a: $a.dim() == 2, <LF>))"),
        (1, "G_LIST + [<F>]"),
        (1, "[$a[0] for $a in itertools.groupby([<F^>], key=lambda $b: $b)]"),
        (1, "list(collections.deque([<F>, <F>], maxlen=<I3> + 1))"),
    ],
    "LI": [
        (3, "[<I>, <I>]"),
        (1, "list(range(<I3> + 1))"),
        (1, "[$a * 2 for $a in <LI^>]"),
        (1, "[<I> for $a in range(3)]", {"$a": "I"}),
        (1, "sorted(<LI>, reverse=<B>)"),
        (1, "sorted(<SI>)"),
        (1, "<LI> + <LI>"),
        (1, "<LI>[1:]"),
        (1, "list(<F>.shape)"),
        (1, "[$a for $a, $b in enumerate(<LF^>)]"),
        (1, "list(<DI>.values())"),
        (1, "[len($a) for $a in 'a bb ccc'.split()]"),
        (1, "[$a + $b for $a in range(2) for $b in <LI^> if $a != $b]"),
        (1, "[$a for $a in count_up(<I3^>)]"),
        (1, "[1, 2, 3, 4][slice(<I3>, None)]"),
        (1, "list(dict.fromkeys(<LI>))"),
        (1, "list(itertools.accumulate(<LI>))"),
        (1, "[$a for $a, $b in itertools.pairwise(<LI^>)]"),
        (1, "[$a for $a in itertools.takewhile(lambda $b: $b < 3, itertools.count())]"),
    ],
    "DF": [
        (3, "{'a': <F>, 'b': <F>}"),
        (1, "dict(a=<F>, c=<F>)"),
        (1, "{$a: $b * 2 for $a, $b in <DF^>.items()}"),
        (1, "{**<DF>, 'd': <F>}"),
        (1, "<DF> | {'a': <F>}"),
        (1, "dict(zip('ab', [<F>, <F>]))"),
        (1, "dict(<DF>)"),
        (1, "collections.OrderedDict(a=<F>, b=<F>)"),
        (1, "collections.defaultdict(list, a=<F>)"),
    ],
    "DI": [
        (2, "{'p': <I>, 'q': <I>}"),
        (1, "{$a: len($a) for $a in ['p', 'qq']}"),
        (1, "{str($a): $a for $a in <LI^>}"),
        (1, "dict(p=<I>)"),
        (1, "dict(collections.Counter('hello'))"),
    ],
    "SI": [
        (2, "{<I>, <I>}"),
        (1, "set(<LI>)"),
        (1, "{$a % 3 for $a in <LI^>}"),
        (1, "<SI> | {<I>}"),
        (1, "<SI> - {<I>}"),
        (1, "<SI> & set(range(5))"),
        (1, "set(frozenset(<LI>))"),
    ],
    "PF": [
        (3, "(<F>, <F>)"),
        (1, "tuple(<LF>)"),
        (1, "(<F>,) + <PF>"),
        (1, "Pair(<F>, <F>)"),
        (1, "torch.broadcast_tensors(<F>, <F>)"),
        (1, "tuple($a.sigmoid() for $a in <LF^>)"),
        (1, "divide(<F>)"),
    ],
    "O": [
        (2, "Box(<F>, <I>)"),
        (1, "Child(<F>, <I>, factor=<D>)"),
        (1, "Data(<F>)"),
        (1, "Data(w=<F>, n=<I>, tags=[<T>])"),
        (1, "dataclasses.replace(Data(<F>), n=<I>)"),
        (1, "Box.make(<F>)"),
        (1, "Slotted(<F>, <I>)"),
    ],
    "C": [
        (1, "torch.relu"),
        (1, "torch.tanh"),
        (1, "helper"),
        (2, "(lambda $a: <F>)", {"$a": "F"}),
        (1, "make_closure(<D>)"),
        (1, "functools.partial(helper, k=<I3>)"),
        (1, "<O>.scale_by"),
        (1, "<O>"),
        (1, "operator.neg"),
        (1, "torch.Tensor.sigmoid"),
        (1, "(<C> if <B> else <C>)"),
        (1, "linear"),
    ],
}

# (weight, text). A statement may need a variable that is not there; another one is drawn then.
STATEMENTS = [
    (8, "<F:a> = <F>"),
    (3, "<F!> = <F>"),
    (2, "<R:a> = <R>"),
    (2, "<S:a> = <S>"),
    (3, "<I:a> = <I>"),
    (2, "<I!> = <I>"),
    (2, "<D:a> = <D>"),
    (1, "<B:a> = <B>"),
    (2, "<T:a> = <T>"),
    (3, "<LF:a> = <LF>"),
    (2, "<LI:a> = <LI>"),
    (2, "<DF:a> = <DF>"),
    (1, "<DI:a> = <DI>"),
    (1, "<SI:a> = <SI>"),
    (2, "<PF:a> = <PF>"),
    (2, "<O:a> = <O>"),
    (1, "<C:a> = <C>"),
    (2, "<LF:a> = <LF@>"),
    (1, "<F:a> = <F:b> = <F>"),
    (2, "<F:a>, <F:b> = <F>, <F>"),
    (1, "<F:a>, <I:b> = (<F>, <I>)"),
    (1, "<F:a>, *<LF:b> = <LF>"),
    (1, "(<F:a>, <F:b>), <I:c> = [<F>, <F>], <I>"),
    (1, "*<LF:a>, <F:b> = [<F>, <F>, <F>]"),
    (1, "<F!>, <F!> = <F>, <F>"),
    (1, "<I:a>, <I:b> = <F>.shape"),
    (2, "<F!> += <D>\n"),
    (2, "<F:a> = <F> * 1\n<a>.add_(<F>)"),
    (1, "<F:a> = <F>.clone()\n<a>.mul_(<D>).sub_(<R>)"),
    (1, "<F:a> = <F>.clone()\n<a>[0] = <D>"),
    (1, "<F:a> = <F>.clone()\n<a>[:, 0] = <S>"),
    (1, "<F:a> = <F>.clone()\n<R:b> = <a>[0]\n<b>.zero_()"),
    (1, "<F:a> = <F>.clone()\n<F:b> = <a>.view(<a>.shape)\n<b>.add_(1)"),
    (1, "<F:a> = <F> + 0\n<a>[<a> < 0] = <D>"),
    (1, "<F:a> = <F>.clone()\n<a>.t()[0].fill_(<D>)"),
    (1, "<F:a> = torch.empty_like(<F>)\ntorch.add(<a>.zero_(), <F>, out=<a>)"),
    (1, "<F@>.detach().add_(<D>)"),
    (3, "<LF@>.append(<F>)"),
    (1, "<LF@>.extend(<LF>)"),
    (1, "<LF@>.insert(0, <F>)"),
    (1, "<F:a> = <LF@>.pop()"),
    (1, "<LF@>[0] = <F>"),
    (1, "<LF@>.reverse()"),
    (1, "<LF@> += [<F>]"),
    (1, "<LF@>[:1] = [<F>, <F>]"),
    (1, "del <LF@>[0]"),
    (2, "<LI@>.append(<I>)"),
    (1, "<LI@>.sort(key=lambda $a: -$a)"),
    (1, "<LI@>[-1] += <I>"),
    (1, "<LI@>.remove(<I>)"),
    (1, "<LI@>.clear()"),
    (2, "<DF@>['a'] = <F>"),
    (1, "<DF@>[<T>] = <F>"),
    (1, "<DF@>.update(a=<F>)"),
    (1, "<DF@>.setdefault('new', <F>)"),
    (1, "<DF@>.pop('b', None)"),
    (1, "del <DF@>['a']"),
    (2, "<DI@>[<T>] = <I>"),
    (1, "<DI@>['p'] = <DI@>.get('p', 0) + <I>"),
    (1, "<SI@>.add(<I>)"),
    (1, "<SI@>.discard(<I>)"),
    (1, "<SI@>.update(<LI>)"),
    (2, "<O@>.w = <F>"),
    (2, "<O@>.n += <I>"),
    (1, "<O@>.items.append(<I>)"),
    (1, "<O@>.extra = <F>"),
    (1, "setattr(<O@>, 'n', <I>)"),
    (1, "<O@>[0] = <F>"),
    (1, "<O@>.size = <I>"),
    (1, "<O@>.extra = <T>\ndel <O@>.extra"),
    (1, "G_LIST.append(<F>)"),
    (1, "G_LIST[:] = [<F>]"),
    (1, "G_TABLE['n'] = <I>"),
    (2, "bump_global(<I>)"),
    (1, "G_BOX.n = <I>"),
    (1, "Box.made += 1"),
    (2, "print(<T>, <I>)"),
    (1, "print('shape', tuple(<F>.shape), sep='=', end=';')"),
    (1, "print(<F>.sum().item() > 0)"),
    (1, "log.warning('seen %s', <T>)"),
    (1, "warnings.warn(<T>)"),
    (1, "<D:a> = <S>.item()"),
    (1, "<LI:a> = torch.arange(<I3> + 1).tolist()"),
    (1, "if <S> > 0:\n    <F!> = <F>\nelse:\n    <block>"),
    (1, "if <F>.sum() > <D>:\n    <block>"),
    (1, "assert <F>.shape[0] > 0, <T>"),
    (1, "<block1>\ncutaway_break()\n<block1>"),
    (5, "if <B>:\n    <block>\nelse:\n    <block>"),
    (3, "if <B>:\n    <block>"),
    (1, "if <B>:\n    <F!> = <F>\nelif <B>:\n    <F!> = <F>\nelse:\n    <block>"),
    (2, "if <B>:\n    return <RET>"),
    (3, "for <I:a> in range(<I3> + 1):\n    <block>"),
    (2, "for <F:a> in <LF>:\n    <block>"),
    (1, "for <I:a>, <F:b> in enumerate(<LF>):\n    <block>\n    if <B>:\n        break\nelse:\n    <block>"),
    (1, "for <T:a>, <F:b> in <DF>.items():\n    <block>"),
    (1, "for <F:a>, <F:b> in zip(<LF>, <LF>):\n    if <B>:\n        continue\n    <block>"),
    (1, "for <R:a> in <F>:\n    <F!> = <F> + <a>"),
    (1, "for <F:a> in produce(<F>, <I3> + 1):\n    <block>"),
    (1, "for <I:a> in sorted(<SI>):\n    <block>"),
    (1, "for <O@>.n in range(2):\n    <block1>"),
    (2, "<I:a> = 0\nwhile <a> < <I3>:\n    <a> += 1\n    <block>"),
    (1, "<I:a> = 0\nwhile True:\n    <a> += 1\n    if <a> > 2 or <B>:\n        break\n    <block>"),
    (1, "if (<I:a> := <I>) > 1:\n    <block>"),
    (1, "<LI:b> = [$a := <I>, $a + 1]"),
    (2, "def $f(p, k=<D>):\n    <params p:F k:D>\n    <block>\n    return <F>\n<C:f> = $f\n<F:r> = $f(<F>)"),
    (
        1,
        "def $f(p, *rest, k=<D>, **more):\n    <params p:F k:D>\n    <block1>\n    return p * k + len(rest) + len(more)\n<F:r> = $f(<F>, <I>, k=<D>, q=<I>)",
    ),
    (
        2,
        "$n = <I>\ndef $f(p):\n    nonlocal $n\n    <params p:F>\n    $n += 1\n    return p * $n\n<F:r> = $f($f(<F>))\n<I:m> = $n",
    ),
    (1, "$n = <F>\ndef $f():\n    nonlocal $n\n    $n = <F>\n    return <I>\n<I:r> = $f()\n<F:m> = $n"),
    (1, "$l = [lambda p, i=$i: p + i for $i in range(2)]\n<F:r> = $l[0](<F>) + $l[1](<F>)"),
    (1, "$l = [lambda p: p + $i for $i in range(2)]\n<F:r> = $l[0](<F>)"),
    (1, "def $g(p):\n    <params p:F>\n    yield <F>\n    $s = yield <F>\n    return <I>\n<LF:r> = list($g(<F>))"),
    (1, "$g = produce(<F>, 3)\n<F:a> = next($g)\n<LF:b> = list($g)"),
    (1, "$g = ($i * 2 for $i in <LF>)\n<F:a> = next($g)"),
    (1, "<LF:a> = list(delegate(<F>))"),
    (
        2,
        "try:\n    <block>\n    if <B>:\n        raise ValueError(<T>)\n    <F!> = <F>\nexcept ValueError as $e:\n    <T:t> = str($e)\n    <block>",
    ),
    (1, "try:\n    <I:a> = <DI>['none']\nexcept (KeyError, IndexError):\n    <block>\nelse:\n    <block>"),
    (2, "try:\n    <block>\nfinally:\n    <block1>"),
    (1, "try:\n    <F:a> = <LF>[7]\nexcept IndexError as $e:\n    print(type($e).__name__, $e)"),
    (1, "try:\n    fail_if(<B>, <T>)\nexcept Custom as $e:\n    <I:a> = $e.code\n    <block>"),
    (
        1,
        "for $i in range(2):\n    try:\n        if <B>:\n            continue\n        <block1>\n    finally:\n        <LI@>.append($i)",
    ),
    (
        1,
        "try:\n    try:\n        fail_if(<B>, 'inner')\n    except Custom as $e:\n        raise RuntimeError('outer') from $e\nexcept RuntimeError as $e2:\n    print($e2, $e2.__cause__)",
    ),
    (1, "fail_if(<B> and <B> and <B>, <T>)"),
    (1, "if <B> and <B>:\n    raise Custom(<T>, <I>)"),
    (1, "<F:a> = <F> + torch.ones(<I3> + 2)"),
    (1, "<F:a> = torch.cat([<F>, <F>], dim=<I3> % 2)[: <F>.shape[0], : <F>.shape[1]]"),
    (2, "with torch.no_grad():\n    <F:a> = <F>\n    <block>"),
    (1, "with torch.no_grad():\n    <F!> = <F>"),
    (1, "with torch.enable_grad():\n    <F!> = <F>"),
    (1, "with Region(<T>) as $c:\n    <block>"),
    (1, "with Region(<T>, swallow=True):\n    <block1>\n    fail_if(<B>, <T>)\n    <block1>"),
    (1, "with Region('a'), torch.no_grad():\n    <F!> = <F>"),
    (1, "with doubled(<F>) as <F:a>:\n    <block1>"),
    (1, "with contextlib.suppress(ValueError):\n    <block1>\n    if <B>:\n        raise ValueError"),
    (1, "torch.set_grad_enabled(False)\n<F!> = <F>\ntorch.set_grad_enabled(True)"),
    (
        1,
        "match <I>:\n    case 0 | 1:\n        <block1>\n    case $n if $n > 2:\n        <F!> = <F>\n    case _:\n        <block1>",
    ),
    (1, "match <LI>:\n    case [$n, *$r]:\n        <F!> = <F> * $n\n    case []:\n        <block1>"),
    (1, "match <O>:\n    case Data(n=$n):\n        <F!> = <F> + $n\n    case Box():\n        <block1>"),
    (1, "<F:a> = torch.rand(2, <F>.shape[1])[0] + <F>"),
    (1, "<F:a> = F.dropout(<F>, 0.25)"),
    (1, "<F:a> = <F> * random.random()"),
    (1, "<D:a> = random.uniform(1, 2)"),
    (1, "<I:a> = random.randint(0, 3)"),
    (1, "<LI:a> = [1, 2, 3]\nrandom.shuffle(<a>)"),
    (1, "<F:a> = net(<F>)"),
    (1, "net.train(<B>)\n<F:a> = net(<F>)"),
    (1, "net.scale = <D>\n<F:a> = net(<F>)"),
    (1, "<F:a> = sum(p.sum() for p in net.parameters()) + <F>"),
    (1, "$d = <F>\ndel $d"),
    (1, "<I:a> = id(<F@>) == id(<F@>)"),
    (1, "<PF:a> = tuple(sorted(<DF>))\n<F:b> = <F> + len(<a>)"),
    (1, "<F:a> = <F>.numpy().sum() + <F>"),
    (1, "<O:a> = copy.copy(<O>)\n<a>.n = <I>"),
    (1, "<O:a> = copy.deepcopy(Box(<F>.detach(), <I>))"),
    (1, "import math as $m\n<D:a> = $m.cos(<D>)"),
    (1, "<F:a> = torch.nn.Linear(<F>.shape[1], <F>.shape[1])(<F>)"),
    (1, "<F:a> = torch.utils.checkpoint.checkpoint(helper, <F>, 2, use_reentrant=False)"),
    (1, "<I:a> = slow_table(<I>)"),
    (1, "<F:a> = cached_scale(<I3>) * <F>"),
    (1, "<LI:a> = list(map(int, str(<I> * 10)))"),
    (1, "<F:a> = getattr(torch, 'sigmoid')(<F>)"),
    (1, "<F:a> = getattr(<F>, 'exp')().clamp(max=3)"),
    (1, "<F:a> = <F>.to(torch.float64).to(<F>.dtype)"),
    (1, "<F:a> = super_call.run(<F>)"),
    (1, "<F:a> = Box.static(<F>)"),
    # breaks inside functions that C calls
    (2, "<F:a> = Broken(<F>, <I3>).value"),
    (1, "$o = Broken(<F>, <I3>)\n<F:a> = $o + <F> if $o else <F> - $o.missing\n<I:b> = len($o)"),
    (1, "$o = Broken(<F>, <I3>)\n$o[<I3>] = <F>\n<F:a> = $o[0] if <I3> in $o else (not $o) + <F>\n$o.tag = <T>"),
    (1, "$o = Broken(<F>, <I3>)\n$o += <I>\n<F:a> = $o.w * (1 if $o < <I3> else 2)\nprint($o == 3, $o != 1)"),
    (1, "for <F:a> in Broken(<F>, <I3>):\n    <block1>\n    if <B>:\n        break"),
    (1, "with Broken(<F>, <I3>) as <F:a>:\n    <block1>\n    fail_if(<B>, <T>)"),
    (1, "try:\n    <F:a> = Broken(<F>, 5).value\nexcept Custom as $e:\n    print($e)"),
    (1, "<LI:a> = sorted(<LI>, key=broken_key, reverse=<B>)"),
    (1, "<LI:a> = list(<LI>)\n<a>.sort(key=broken_key)"),
    (1, "<I:a> = max(<LI>, key=broken_key, default=0) - min(3, <I>, key=broken_key)"),
    (1, "<F:a> = functools.reduce(lambda p, q: breaking(p, 1) + q, <LF>, <F>)"),
    (1, "<F:a> = sum(broken_items(<F>, <I3>), <F>)"),
    (1, "<LF:a> = list(broken_items(<F>, 2)) + [$v for $v in map(broken_function, <LF>)]"),
    (2, "for <F:a> in broken_items(<F>, <I3>):\n    <block1>\n    if <B>:\n        break\nelse:\n    <block1>"),
    (1, "$g = broken_items(<F>, 2)\n<F:a> = next($g) + next($g)\nprint(next($g, None))"),
    (1, "for <F:a> in broken_delegate(<F>):\n    print(<T>)\n    <block1>"),
    # breaks inside loops, blocks and calls
    (2, "for <I:a> in range(<I3> + 1):\n    <block1>\n    print(<a>)\n    <block1>"),
    (1, "for <F:a> in <LF>:\n    if <S> > 0:\n        <block1>\n    else:\n        continue\n    <F!> = <F>"),
    (1, "for <F:a> in <LF@>:\n    <block1>\n    cutaway_break()\n    if len(<LF@>) < 4:\n        <LF@>.append(<F>)"),
    (1, "for <T:a>, <F:b> in <DF>.items():\n    <block1>\n    cutaway_break()\n    <DF@>[<a>] = <F>"),
    (1, "for <T:a> in <DI@>:\n    <block1>\n    print(<a>)\n    <DI@>[<T>] = <I>"),
    (
        1,
        "for <I:a>, <F:b> in enumerate(reversed(<LF>), <I3>):\n    print(<a>)\n    <block1>\n    if <B>:\n        break\nelse:\n    <block1>",
    ),
    (1, "for <F:a>, <I:b> in zip(map(lambda p: p + 1, <LF>), <LI>):\n    cutaway_break()\n    <block1>"),
    (1, "for <F:a> in produce(<F>, <I3> + 1):\n    <block1>\n    cutaway_break()\n    <block1>"),
    (1, "for <F:a> in delegate(<F>):\n    print(<T>)\n    <block1>"),
    (1, "for <I:a> in count_up(<I3>):\n    cutaway_break()\n    <block1>\n    if <B>:\n        break"),
    (1, "$g = produce(<F>, 3)\n<F:a> = next($g)\n<block1>\ncutaway_break()\n<LF:b> = list($g)"),
    (
        1,
        "for $i in range(2):\n    for $j in <LI>:\n        <block1>\n        print($i, $j)\n        if $j == 2:\n            break",
    ),
    (1, "<I:a> = 0\nwhile <a> < 3 and <F>.sum() < 1000:\n    <a> += 1\n    <block1>"),
    (1, "<LF:a> = [$v + breaking(<F>, 1) for $v in <LF>]"),
    (1, "with Region(<T>) as $c:\n    <block1>\n    cutaway_break()\n    <block1>\n    fail_if(<B> and <B>, $c.name)"),
    (1, "print(torch.is_autocast_enabled('cpu'), torch.is_inference_mode_enabled(), torch.is_grad_enabled())"),
    (1, "$y = <F>.clone()\n$y[: <I>, <I> :] = <D>\n<F!> = $y"),
    (1, "with torch.no_grad():\n    <F!> = <F>\n    print(torch.is_grad_enabled())\n    <F!> = <F>"),
    (
        1,
        "with torch.inference_mode():\n    <I:a> = <I>\n    $y = <F>\n    cutaway_break()\n    print($y.is_inference(), (<F>).is_inference())",
    ),
    (
        1,
        "with torch.autocast('cpu', dtype=torch.bfloat16):\n    <F:a> = <F>\n    cutaway_break()\n    <F:b> = (<F> @ <F>.t() @ <F>).to(<F>.dtype)",
    ),
    (1, "with doubled(<F>) as <F:a>:\n    <block1>\n    print(<T>)\n    <block1>"),
    (
        1,
        "for $i in range(2):\n    with Region('loop', swallow=<B>):\n        <block1>\n        print($i)\n        fail_if(<B>, <T>)\n        <block1>",
    ),
    (
        1,
        "try:\n    <block1>\n    cutaway_break()\n    fail_if(<B>, <T>)\n    <block1>\nexcept Custom as $e:\n    <I:a> = $e.code\n    cutaway_break()\n    <block1>\nfinally:\n    print(<T>)",
    ),
    (
        1,
        "for $i in range(3):\n    try:\n        <F!> = breaking(<F>, $i)\n        fail_if($i == 1, <T>)\n    except Custom:\n        continue\n    finally:\n        <LI@>.append($i)",
    ),
    (
        1,
        "try:\n    <F:a> = breaking_inside(<F>, <I>)\n    raise KeyError(<T>)\nexcept KeyError as $e:\n    raise RuntimeError(str($e)) from $e",
    ),
    (1, "def $f(p):\n    <params p:F>\n    <block1>\n    print(<I>)\n    return <F>\n<F:r> = $f($f(<F>))"),
    (
        1,
        "$n = 0\ndef $f(p):\n    nonlocal $n\n    $n += 1\n    print($n)\n    $n += 1\n    return p * $n\n<F:r> = $f($f(<F>))\n<I:m> = $n",
    ),
]

# Declarations at the top of a module, by the names that use them. Placeholders are filled with the names in `params` in reach.
DECLARATIONS = {
    "G_N": "G_N = 1",
    "G_SCALE": "G_SCALE = 0.75",
    "G_FLAG": "G_FLAG = True",
    "G_W": "G_W = torch.tensor([1.5])",
    "G_LIST": "G_LIST = []",
    "G_TABLE": "G_TABLE = {'n': 0, 'f': torch.cos}",
    "log": "log = logging.getLogger('program')",
    "linear": "linear = functools.partial(F.leaky_relu, negative_slope=0.1)",
    "helper": "def helper(p, k=2):\n    <params p:F k:I>\n    <block1>\n    return <F>",
    "kwargs_helper": "def kwargs_helper(p, *rest, k=1.0, **more):\n    <params p:F k:D>\n    for q in rest:\n        p = p + q\n    for name, v in more.items():\n        p = p * v + len(name)\n    return p * k",
    "recursive": "def recursive(p, k):\n    <params p:F k:I>\n    if k <= 0:\n        return <F>\n    return recursive(p * 0.5, k - 1) + k",
    "decorated": "def twice(f):\n    @functools.wraps(f)\n    def wrapper(*args, **kwargs):\n        return f(f(*args, **kwargs))\n    return wrapper\n\n@twice\ndef decorated(p):\n    <params p:F>\n    return <F>",
    "make_closure": "def make_closure(k):\n    calls = 0\n    def inner(p):\n        nonlocal calls\n        calls += 1\n        return p * k + calls\n    return inner",
    "produce": "def produce(p, k):\n    <params p:F k:I>\n    for i in range(k):\n        p = p + i\n        yield p",
    "delegate": "def delegate(p):\n    <params p:F>\n    got = yield from produce(p, 2)\n    yield <F>",
    "count_up": "def count_up(k):\n    i = 0\n    try:\n        while i < k:\n            yield i\n            i += 1\n    finally:\n        G_LIST.append(i)",
    "divide": "def divide(p):\n    return p / 2, p - 1",
    "bump_global": "def bump_global(k):\n    global G_N\n    G_N += k\n    return G_N",
    "Custom": "class Custom(Exception):\n    def __init__(self, text, code=3):\n        super().__init__(text)\n        self.code = code",
    "fail_if": "def fail_if(condition, text):\n    if condition:\n        raise Custom(text)",
    "Color": "class Color(enum.Enum):\n    RED = 1\n    BLUE = 2",
    "Fixed": "class Fixed:\n    LIMIT = 3",
    "Pair": "Pair = collections.namedtuple('Pair', 'left right')",
    "point": "Point = collections.namedtuple('Point', 'x y')\npoint = Point(1, 2)",
    "Box": """class Box:
    made = 0
    factor = 0.5

    def __init__(self, w, n):
        self.w = w
        self.n = n
        self.items = []

    @classmethod
    def make(cls, w):
        return cls(w, 1)

    @staticmethod
    def static(p):
        return p * 3

    @property
    def twice(self):
        return self.w * 2

    @property
    def size(self):
        return self.n

    @size.setter
    def size(self, value):
        self.n = value + 1

    def scale_by(self, k):
        return self.w * k * self.n

    def bump(self):
        self.n += 1
        return self.n

    def __call__(self, p):
        self.items.append(len(self.items))
        return self.w + p

    def __getitem__(self, i):
        return self.w + i

    def __setitem__(self, i, value):
        self.w = value * (i + 1)

    def __eq__(self, other):
        return isinstance(other, Box) and self.n == other.n

    def __hash__(self):
        return 7

    def __repr__(self):
        return f'{type(self).__name__}({self.n})'

    def __len__(self):
        return 2""",
    "Child": """class Child(Box):
    def __init__(self, w, n, factor=1.0):
        super().__init__(w, n)
        self.factor = factor

    def scale_by(self, k):
        return super().scale_by(k) + self.factor

    def __getattr__(self, name):
        if name == 'missing':
            raise AttributeError(name)
        return len(name)""",
    "Data": """@dataclasses.dataclass
class Data:
    w: torch.Tensor
    n: int = 2
    items: list = dataclasses.field(default_factory=list)
    tags: list = dataclasses.field(default_factory=list)
    factor: float = 0.25

    def scale_by(self, k):
        return self.w * k

    @property
    def twice(self):
        return self.w * 2

    def bump(self):
        self.n += 1
        return self.n

    def __call__(self, p):
        return p + self.n

    def __getitem__(self, i):
        return self.w - i

    def __setitem__(self, i, value):
        self.w = value

    def __repr__(self):
        return f'Data({self.n})'""",
    "Slotted": """class Slotted(Box):
    __slots__ = ('hidden',)

    def __init__(self, w, n):
        super().__init__(w, n)
        self.hidden = n

    def __setattr__(self, name, value):
        if name == 'n':
            value = value + 1
        object.__setattr__(self, name, value)""",
    "G_BOX": "G_BOX = Box(torch.tensor(2.0), 1)",
    "Region": """class Region:
    def __init__(self, name, swallow=False):
        self.name = name
        self.swallow = swallow

    def __enter__(self):
        print('enter', self.name)
        return self

    def __exit__(self, kind, value, traceback):
        print('exit', self.name, kind.__name__ if kind else None)
        return self.swallow""",
    "doubled": """@contextlib.contextmanager
def doubled(p):
    G_LIST.append(1)
    try:
        yield p * 2
    finally:
        G_LIST.append(2)""",
    "breaking": "def breaking(p, k):\n    q = p * (k + 1)\n    cutaway_break()\n    G_LIST.append(k)\n    return q + p",
    "breaking_inside": "def breaking_inside(p, k):\n    q = p - k\n    try:\n        q = breaking(q, k) + q\n        fail_if(k > 2, 'inside')\n    finally:\n        G_LIST.append(q.shape[0])\n    return q * 0.5",
    "broken_key": "def broken_key(k):\n    cutaway_break()\n    return (k * 7) % 5",
    "broken_function": "def broken_function(p):\n    q = p + 1\n    cutaway_break()\n    return q * 0.5",
    "broken_items": "def broken_items(p, k):\n    for i in range(k):\n        q = p * (i + 1)\n        cutaway_break()\n        yield q + i\n    G_LIST.append(k)",
    "broken_delegate": "def broken_delegate(p):\n    <params p:F>\n    cutaway_break()\n    yield from broken_items(p, 2)\n    try:\n        yield broken_function(<F>)\n    finally:\n        cutaway_break()",
    "Broken": """class Broken:
    def __init__(self, w, n):
        self.w = w * 2
        cutaway_break()
        self.n = n
        fail_if(n > 4, 'large')

    @property
    def value(self):
        y = self.w + self.n
        cutaway_break()
        fail_if(self.n == 2, 'two')
        return y * 0.5

    def __getattr__(self, name):
        cutaway_break()
        if name == 'absent':
            raise AttributeError(name)
        return len(name)

    def __setattr__(self, name, value):
        if name == 'tag':
            cutaway_break()
        object.__setattr__(self, name, value)

    def __add__(self, other):
        y = self.w * 3
        cutaway_break()
        return NotImplemented if self.n == 3 else y + other

    def __iadd__(self, other):
        self.w = self.w + other
        cutaway_break()
        self.w = self.w * 2
        return self

    def __radd__(self, other):
        cutaway_break()
        return other - self.w

    def __lt__(self, other):
        cutaway_break()
        return self.n < other

    def __eq__(self, other):
        cutaway_break()
        return NotImplemented if self.n == 0 else self.n == other

    def __bool__(self):
        cutaway_break()
        return self.n > 1

    def __len__(self):
        y = self.w + 1
        cutaway_break()
        self.w = y
        return self.n

    def __contains__(self, k):
        cutaway_break()
        return k == self.n

    def __getitem__(self, i):
        y = self.w * i
        cutaway_break()
        return y - 1

    def __setitem__(self, i, value):
        self.w = value + i
        cutaway_break()
        self.w = self.w * 0.5

    def __iter__(self):
        cutaway_break()
        for i in range(self.n):
            yield self.w + i
            cutaway_break()

    def __enter__(self):
        y = self.w * 2
        cutaway_break()
        return y + 1

    def __exit__(self, kind, value, traceback):
        cutaway_break()
        print('left', kind.__name__ if kind else None)
        return self.n > 0""",
    "Loud": """class Loud:
    def __init__(self, w):
        self.w = w
        print('made')

    def run(self, k):
        y = self.w * k
        print(k)
        return self.step(y) + y

    def step(self, y):
        self.w = y
        print('step')
        return self.w + 1""",
    "slow_table": "@functools.lru_cache(maxsize=None)\ndef slow_table(k):\n    return k * 3",
    "cached_scale": "scales = {}\n\ndef cached_scale(k):\n    if k not in scales:\n        scales[k] = k + 0.5\n    return scales[k]",
    "super_call": "class Base:\n    def run(self, p):\n        return p + 1\n\nclass Derived(Base):\n    def run(self, p):\n        return super().run(p) * 2\n\nsuper_call = Derived()",
    "net": """class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([0.5]))
        self.register_buffer('steps', torch.zeros(()))
        self.inner = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Dropout(0.5))
        self.scale = 1.0

    def forward(self, p):
        if self.training:
            self.steps += 1
        return self.inner(p * self.weight) * self.scale

net = Net()
net.inner[0].register_forward_hook(lambda module, args, out: out + 1)""",
    "cutaway_break": "def cutaway_break():\n    sys.getrefcount(None)",
}

IMPORTS = """import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import logging
import math
import operator
import random
import sys
import warnings

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
"""
