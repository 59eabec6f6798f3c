"""What the paper concludes, and which numbers and claims decide it."""

from fedtheory.core.conclusions import Conclusion

CONCLUSIONS: list[Conclusion] = []
