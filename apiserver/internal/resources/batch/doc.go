// Package batch says what is particular about jobs, whose pods end, and about
// cron jobs, which make jobs by a timetable.
package batch
