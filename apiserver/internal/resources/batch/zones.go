package batch

// Images have no files of time zones.
import _ "time/tzdata"
