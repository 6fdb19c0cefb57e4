"""Legacy mode for scripts that say `import keras`.

TF_USE_LEGACY_KERAS=1 makes `tf.keras` tf_keras (Keras 2), but a plain `import keras` still gives Keras 3 (TensorFlow
2.16 to 2.21), and a script that uses both would mix two Kerases. Here the name `keras` is tf_keras too.
"""

import importlib
import importlib.machinery


class AliasLoader:
    """Gives the module of tf_keras itself, under another name."""

    def create_module(self, spec):
        """`tf_keras.layers` for `keras.layers`."""
        module = importlib.import_module("tf_" + spec.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        """It has run already: only what the import machinery wrote into it is put back."""
        module.__spec__ = self.spec


class Alias:
    """Finds `keras` and all below it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """See AliasLoader."""
        if name == "keras" or name.startswith("keras."):
            return importlib.machinery.ModuleSpec(name, AliasLoader(), is_package=True)
        return None
