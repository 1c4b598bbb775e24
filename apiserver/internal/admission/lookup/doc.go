// Package lookup finds the objects that admission plugins decide by. It reads
// the cache first, because every create asks for its namespace and its service
// account, and the store itself only where the cache has no such object.
//
// Plugins call it. What it returns is shared and must not be changed.
package lookup
