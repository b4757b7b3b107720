"""The page's files: there, of the right kind, under a policy without exceptions."""

import re
from pathlib import Path

import pyserini_repbert.serve
from pyserini_repbert.extension import extensions
from pyserini_repbert.fusion.methods import FusionMethod, Normalization
from pyserini_repbert.serve.app import page_text

PAGE = Path(pyserini_repbert.serve.__file__).parent / 'page'


def test_the_files(client):
    kinds = {
        '.js': 'text/javascript',
        '.css': 'text/css',
        '.svg': 'image/svg+xml',
        '.html': 'text/html',
    }
    files = [path for path in PAGE.rglob('*') if path.is_file()]
    assert len(files) > 20
    for path in files:
        answer = client.get(f'/{path.relative_to(PAGE).as_posix()}')
        content = path.read_bytes()
        if path.name in ('index.html', 'lab.html'):
            content = page_text(path.name).encode()
            assert content.startswith((PAGE / 'head.html').read_bytes())
        assert answer.status_code == 200 and answer.content == content
        assert answer.headers['content-type'].split(';')[0] == kinds[path.suffix]
        assert answer.headers['cache-control'] == 'no-cache'
        again = client.get(answer.url.path, headers={'If-None-Match': answer.headers['etag']})
        assert again.status_code == 304 and again.headers['cache-control'] == 'no-cache'
    assert client.get('/').text == page_text('index.html')
    # Their files are read once.
    assert page_text('index.html') is page_text('index.html')
    assert client.head('/').status_code == 200
    for lacking in ('/js/none.js', '/../app.py', '/js/..%2f..%2fapp.py'):
        assert client.get(lacking).status_code == 404


def test_the_files_of_extensions(client):
    names = [name for name, each in extensions().items() if each.page]
    for name in names:
        for page, files in extensions()[name].page.items():
            shown = page_text({'reader': 'index.html', 'laboratory': 'lab.html'}[page])
            for file in files:
                assert f'"extensions/{name}/{file}"' in shown
                assert client.get(f'/extensions/{name}/{file}').status_code == 200
        assert client.get(f'/extensions/{name}/..%2f__init__.py').status_code == 404


def test_an_address_of_the_laboratory_stays_its_own(client):
    laboratory = page_text('lab.html')
    for address in ('/?view=compare&q=cat', '/?q=cat&system=dense', '/?q=cat&rerank=a%401'):
        assert client.get(address).text == laboratory
    assert client.get('/?q=cat').text != laboratory


def test_the_laboratory_offers_every_way_to_fuse():
    picker = (PAGE / 'js/picker.js').read_text(encoding='utf-8')
    for constant, names in (('FUSIONS', FusionMethod), ('NORMALIZED', Normalization)):
        (offered,) = re.findall(rf'^const {constant} = (.*);$', picker, re.MULTILINE)
        assert re.findall(r"(\w+): '", offered) == [str(name) for name in names]


def test_the_policy(client):
    policy = client.get('/').headers['content-security-policy']
    assert 'unsafe' not in policy and '*' not in policy
    assert {"default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'"} <= set(
        policy.split('; ')
    )


def test_nothing_comes_from_elsewhere_or_goes_around_the_policy():
    for path in PAGE.rglob('*.*'):
        text = path.read_text(encoding='utf-8')
        assert set(re.findall(r'https?://[\w.]+', text)) <= {'http://www.w3.org'}, (
            path
        )  # SVG's namespace
        assert not re.search(
            r'innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function', text
        ), path
    for name in ('index.html', 'lab.html'):
        html = page_text(name)
        assert not re.search(r'\son\w+=|\sstyle=|<style|<script>', html)
