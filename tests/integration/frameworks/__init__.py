"""What the tests of all frameworks need from each: one module a framework, named like its room.

A module has

- ``SETTINGS``: the framework's settings with which a rank that waits for another one in vain soon gives up;
- ``collective()``: called in a training function, gives a function that averages a number over all ranks;
- ``FITS``: functions that fit the model of :mod:`tests.integration.frameworks.regression`, by name;
- ``train(epochs, die)``: trains, saves and resumes, calls ``die(epoch)`` after each report, and then meets the other ranks;
- ``world_size()``: how many ranks the framework itself sees;
- ``CAUSES``: where a fault of a rank has another cause than with the other frameworks, that cause.
"""
