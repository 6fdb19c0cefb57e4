"""Keeps `fit` from waiting, up to a minute, after its last step under MultiWorkerMirroredStrategy.

Each iterator over a distributed dataset has threads that tune its buffers. They sleep between two looks, twice as long
each time, up to a minute; the end of the iterator should wake them, and sometimes does not (TensorFlow 2.21: seen in
RootDataset::Iterator's destructor, below MultiDeviceIterator's, with legacy Keras and Keras 3 alike). Nothing is
computed meanwhile, and the other workers wait too. Two datasets are concerned: the one that is iterated, and the
small one that TensorFlow puts behind it for each device. With tuning off in both the wait is gone; with it off in the
script's own alone it is not. AUTOTUNE in a script then means TensorFlow's first guess, as many calls as there are
threads. A script that sets `options.autotune.enabled` itself is obeyed.
"""

import _yurt_task


def mend(module):
    """Of ``tensorflow.python.data.ops.multi_device_iterator_ops``."""
    create, begin = module._create_device_dataset, module.OwnedMultiDeviceIterator.__init__

    def mended_create(*args, **kwargs):
        return untuned(create(*args, **kwargs))

    def mended_begin(self, dataset=None, *args, **kwargs):
        begin(self, None if dataset is None else untuned(dataset), *args, **kwargs)

    if _yurt_task.several():
        module._create_device_dataset = mended_create
        module.OwnedMultiDeviceIterator.__init__ = mended_begin


def untuned(dataset):
    """The dataset without the threads that tune it."""
    from tensorflow.python.data.ops.options import Options

    if dataset.options().autotune.enabled is not None:
        return dataset
    options = Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
