"""What the studies on recurrent attention models share: data, training, readings, figures."""
