"""Write cuda.h: only what gorgonia.org/cu v0.9.6 and this module name, with the driver's symbols of CUDA 11.

    python3 -m venv v && v/bin/pip install pycparser nvidia-cuda-runtime-cu11==11.8.89
    v/bin/python mkheader.py v/lib/python3*/site-packages/nvidia/cuda_runtime/include "$(go list -m -f '{{.Dir}}' gorgonia.org/cu)" .

The output describes an interface: names, values and layouts. It copies no comments or text. Needs gcc."""
import re, sys, os, glob, subprocess
from pycparser import c_parser, c_ast, c_generator
inc, cu, out = sys.argv[1:4]
need = set()
for f in glob.glob(cu + '/*.go'):
    s = open(f).read(); need |= set(re.findall(r'\bC\.([A-Za-z_0-9]+)', s))
    if 'import "C"' in s: need |= set(re.findall(r'\b(cu[A-Z]\w+|CU\w+)\b', s.split('import "C"')[0]))
for f in glob.glob(cu + '/*.[ch]'): need |= set(re.findall(r'\b(cu[A-Z]\w+|CU\w+)\b', open(f).read()))
need |= {'cuInit'}
need |= set('''cuMemHostAlloc cuMemHostRegister cuMemHostUnregister cuMemHostGetDevicePointer cuFuncSetAttribute
cuGetErrorName cuGetErrorString cuDeviceGetPCIBusId cuMemHostGetFlags cuModuleLoadDataEx
CU_MEMHOSTALLOC_PORTABLE CU_MEMHOSTALLOC_DEVICEMAP CU_MEMHOSTREGISTER_PORTABLE CU_MEMHOSTREGISTER_DEVICEMAP
CU_MEMHOSTREGISTER_READ_ONLY CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES CU_JIT_ERROR_LOG_BUFFER
CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED
CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN'''.split())
pp = subprocess.run(['gcc', '-E', '-P', '-D__attribute__(x)=', '-I', inc, '-include', 'cuda.h', '-x', 'c', '/dev/null'], capture_output=True, text=True).stdout
dm = subprocess.run(['gcc', '-E', '-dM', '-I', inc, '-include', 'cuda.h', '-x', 'c', '/dev/null'], capture_output=True, text=True).stdout
mac = dict(re.findall(r'#define (cu[A-Z]\w+) (?:__CUDA_API_PT[DS]+Z?\()?(cu[A-Z]\w+)\)?$', dm, re.M))
val = dict(re.findall(r'#define (CU_\w+) +(0x\w+|\d+|\(\(void ?\*\) ?0x\w+\))$', dm, re.M))
pp = re.sub(r'__extension__|__inline|__restrict|_Noreturn|__asm__\s*\([^)]*\)', '', pp); pp = re.sub(r'\b_Float\d+x?\b|__builtin_va_list', 'int', pp)
pp = pp[pp.index('typedef uint32_t cuuint32_t'):] if 'typedef uint32_t cuuint32_t' in pp else pp
pre = 'typedef unsigned long size_t; typedef unsigned int uint32_t; typedef unsigned long uint64_t; typedef unsigned long uintptr_t; typedef long intptr_t; typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef long int64_t; typedef int int32_t;\n'
ast = c_parser.CParser().parse(pre + pp, 'cuda.h'); G = c_generator.CGenerator()
typ, tags, funcs, enumof = {}, {}, {}, {}
def scan(t):
    for _, n in t.children(): scan(n)
    if isinstance(t, (c_ast.Struct, c_ast.Union)) and t.decls: tags[t.name] = t
    if isinstance(t, c_ast.Enum) and t.values:
        tags[t.name] = t
        for e in t.values.enumerators: enumof[e.name] = t
for d in ast.ext:
    scan(d)
    if isinstance(d, c_ast.Typedef): typ[d.name] = d
    elif isinstance(d, c_ast.Decl) and isinstance(d.type, c_ast.FuncDecl): funcs[d.name] = d
done, order = set(), []
def ev(e, env):  # integer value of an enumerator expression
    return eval(re.sub(r'([0-9a-fx])[uUlL]+\b', r'\1', G.visit(e), flags=re.I), {}, env)
def deps(n):
    for _, c in n.children(): deps(c)
    if isinstance(n, c_ast.IdentifierType): [want(x) for x in n.names]
    if isinstance(n, (c_ast.Struct, c_ast.Union, c_ast.Enum)) and n.name: want_tag(n.name)
def want_tag(t):
    if ('t', t) in done or t not in tags: return
    done.add(('t', t)); n = tags[t]
    if isinstance(n, c_ast.Enum):
        env, v, keep = {}, -1, []
        for e in n.values.enumerators:
            v = ev(e.value, env) if e.value else v + 1; env[e.name] = v
            if e.name in need: keep.append('%s = %s' % (e.name, hex(v) if v > 4096 else v))
        if not keep: keep = ['%s_PLACEHOLDER = 0' % t]
        if max(env.values()) > 65535 and not any('0x' in k for k in keep): keep.append('%s_WIDE = 0x7fffffff' % t)
        order.append('enum %s {\n  %s\n};' % (t, ',\n  '.join(keep)))
    else:
        for d in n.decls: deps(d)
        n.coord = None; order.append(G.visit(c_ast.Decl(None, [], [], [], [], n, None, None)) + ';')
def want(x):
    if x in done or x not in typ: return
    done.add(x)
    if x in ('size_t', 'uint32_t', 'uint64_t', 'uintptr_t', 'intptr_t', 'uint8_t', 'uint16_t', 'int64_t', 'int32_t'): return
    d = typ[x]
    i = d.type.type if isinstance(d.type, c_ast.TypeDecl) else None
    if isinstance(i, (c_ast.Struct, c_ast.Union)) and i.decls and not i.name:
        for q in i.decls: deps(q)
    else: deps(d)
    if isinstance(i, (c_ast.Struct, c_ast.Union, c_ast.Enum)) and i.name and (getattr(i, 'decls', None) or getattr(i, 'values', None)):
        k = {c_ast.Struct: 'struct', c_ast.Union: 'union', c_ast.Enum: 'enum'}[type(i)]; order.append('typedef %s %s %s;' % (k, i.name, x))
    else: order.append(G.visit(d) + ';')
syms, miss = [], []
for n in sorted(need):
    if n in typ: want(n)
    elif n in enumof: want_tag(enumof[n].name) if enumof[n].name else miss.append(n)
    elif n.startswith('cu'):
        r = n
        while r in mac: r = mac[r]
        if r in funcs:
            d = funcs[r]; deps(d)
            if r != n: order.append('#define %s %s' % (n, r))
            for p in (d.type.args.params if d.type.args else []):  # drop parameter names
                q = p.type
                while not isinstance(q, c_ast.TypeDecl): q = q.type
                q.declname = None; p.name = None
            d.storage = []; d.funcspec = []; order.append(G.visit(d) + ';'); syms.append(r)
        else: miss.append(n)
    elif n in val: order.append('#define %s %s' % (n, val[n]))
    elif n.startswith(('CU', 'CUDA')): miss.append(n)
os.makedirs(out, exist_ok=True)
open(out + '/cuda.h', 'w').write('/* Code generated by mkheader.py from the interface of CUDA 11.8; DO NOT EDIT.\n   The part of the CUDA driver interface that gorgonia.org/cu v0.9.6 and this module name: names, values\n   and layouts only. */\n#define GRAPHNB_CUDA_H 1\n#ifndef CUDA_VERSION\n#define CUDA_VERSION 11080\n#include <stdint.h>\n#include <stdlib.h>\n#define CUDAAPI\n#define CUDA_CB\n#ifdef __cplusplus\nextern "C" {\n#endif\n' + '\n'.join(order) + '\n#ifdef __cplusplus\n}\n#endif\n#endif\n')
print('functions', len(set(syms)), 'not found:', miss)
