// Package config turns the API server's flags into options and checks them
// before anything is started.
//
// The program's main function calls it. It opens nothing: files are read where
// they are needed.
package config
