"""The local node: one machine, no root needed, nothing installed, and nothing left when its command ends.

The launcher starts a static init in namespaces of its own, init starts the agent, the agent stages the node, and the
launcher then joins those namespaces and forks the command. The node lives exactly as long as its init. Where the kernel
refuses namespaces, a directory and a few environment variables serve instead.
"""
