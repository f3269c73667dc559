-- Of the hashes of texts, too, the server is to note no samples: nothing is looked up by these columns. (It must know
-- of fingerprints, by which texts are found, that each is rare.) To set a column's type, though it is the same, is what
-- takes away the samples that were noted before.
ALTER TABLE memories ALTER text_hash SET STATISTICS 0, ALTER text_hash TYPE TEXT COLLATE "C";
ALTER TABLE vectors ALTER text_hash SET STATISTICS 0, ALTER text_hash TYPE TEXT COLLATE "C";
