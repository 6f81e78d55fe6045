"""Parts of `bench/soak.py`: what is generated, who judges it, how it runs."""
