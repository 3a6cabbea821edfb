"""The places that events come from, behind one seam."""
