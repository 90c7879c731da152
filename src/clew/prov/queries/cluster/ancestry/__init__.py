"""The Pods that a target depends on, as plain data for plans of reproductions.

ancestor_walk the walk to all Pods that a plan may need
needed_pods   those of them that a plan may run
ancestry      what is known of these Pods
"""
