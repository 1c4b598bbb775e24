// Package config holds the scheduler's flags, named as upstream's, and joins
// them with the configuration file. The command calls it; it starts nothing.
package config
