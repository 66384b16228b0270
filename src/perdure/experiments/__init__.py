"""Experiments: a stream, methods and seeds from one YAML file; and recipes, the settings of one learner, from another."""
