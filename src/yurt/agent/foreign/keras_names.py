"""Which names one Keras has and the other has not; facts of Keras 3.15 and tf_keras 2.21, listed from both.

Stands before `source_facts.py` when that is run.
"""

#: What Keras 3's own `keras.backend` still has; all else of it means Keras 2.
BACKEND_OF_3 = {
    "backend",
    "clear_session",
    "common",
    "epsilon",
    "floatx",
    "get_uid",
    "image_data_format",
    "is_float_dtype",
    "is_int_dtype",
    "is_keras_tensor",
    "result_type",
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
    "standardize_dtype",
}
#: Those of them that the hook's Keras 2 manners bring back.
BACKEND_BY_MANNERS = {"set_value", "get_value", "batch_set_value", "eval"}
#: What tf_keras 2.21 has and the `tf.keras` of Keras 3.15 has not, by its place below `keras`.
ONLY_IN_2 = {
    "": "experimental dtensor saving",
    "backend": "experimental function in_test_phase in_train_phase learning_phase learning_phase_scope local_conv1d"
    " local_conv2d manual_variable_initialization placeholder print_tensor random_binomial reset_uids"
    " set_learning_phase",
    "callbacks": "BaseLogger SidecarEvaluatorModelExport experimental",
    "constraints": "RadialConstraint radial_constraint",
    "layers": "AbstractRNNCell DenseFeatures LocallyConnected1D LocallyConnected2D experimental",
    "losses": "kl_divergence log_cosh mean_absolute_error mean_absolute_percentage_error mean_squared_error"
    " mean_squared_logarithmic_error",
    "metrics": "MeanRelativeError MeanTensor experimental kl_divergence log_cosh mean_absolute_error"
    " mean_absolute_percentage_error mean_squared_error mean_squared_logarithmic_error",
    "models": "experimental model_from_config",
    "optimizers": "experimental legacy",
    "utils": "GeneratorEnqueuer OrderedEnqueuer SequenceEnqueuer SidecarEvaluator experimental",
}
#: The same for `import keras`, which is not the same as `tf.keras` in Keras 3.
ONLY_IN_2_OF_KERAS = {
    **{name: ONLY_IN_2[name] for name in ("callbacks", "constraints", "optimizers", "utils")},
    "": "experimental dtensor",
    "layers": ONLY_IN_2["layers"] + " RandomHeight RandomWidth ThresholdedReLU",
    "losses": "KLD MAE MAPE MSE MSLE Reduction kld kullback_leibler_divergence logcosh mae mape mse msle",
    "metrics": "KLD MAE MAPE MSE MSLE MeanRelativeError MeanTensor experimental kld mae mape mse msle",
    "models": "experimental",
    "preprocessing": "text",
    "preprocessing.image": "DirectoryIterator ImageDataGenerator Iterator NumpyArrayIterator",
    "preprocessing.sequence": "TimeseriesGenerator make_sampling_table skipgrams",
}
#: Those of them that the hook's Keras 2 manners do for.
ONLY_IN_2_BY_MANNERS = {"optimizers.legacy", "utils.experimental", "callbacks.experimental"}
#: What Keras 2 has not, below `keras`.
ONLY_IN_3 = {"ops", "random", "distribution", "tree", "quantizers", "Variable", "KerasTensor"}
