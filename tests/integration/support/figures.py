"""What a test measured for a promise of docs/reference/survival.md."""
import json
import os


def figure(promise, value):
    """Records a figure, text with its unit ("12 ms", "0 lost of 200"), for `./try survive`.

    `promise` is the row's id there, such as "F05" or "hole-6". Always printed; also appended to the
    file that SCORE_FIGURES names. The bound is checked by the test itself.
    """
    print(f'{promise}: {value}', flush=True)
    path = os.environ.get('SCORE_FIGURES')
    if path:
        with open(path, 'a', encoding='utf-8') as file:
            file.write(json.dumps({'promise': promise, 'figure': value,
                                   'test': os.environ.get('PYTEST_CURRENT_TEST', '')}) + '\n')
